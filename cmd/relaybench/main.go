// Command relaybench measures Nostr relays head to head. README.md says how.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Stdout, os.Stderr, os.Args[1:]))
}
