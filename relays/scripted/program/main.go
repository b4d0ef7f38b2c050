// Command program is the scripted relay of tests as a process of its own: see package
// relays/scripted.
package main

import (
	"os"

	"relaybench/relays/scripted"
)

func main() { os.Exit(scripted.Main(os.Args[1:])) }
