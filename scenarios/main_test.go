package scenarios

import (
	"flag"
	"os"
	"testing"

	"relaybench/relays/scripted"
)

// TestMain has more tests run at once than there are processors, unless told otherwise: most of the
// time they wait for what a script holds back.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	os.Exit(scripted.Run(m))
}
