package testrun

import (
	"os"
	"runtime/debug"
)

// collectAt is the growth of the heap, in percent, after which tests collect garbage.
const collectAt = 400

// Tests make much garbage and keep little of it: their heaps are a few megabytes. With Go's own 100 percent a test of clients and
// journals collects many times a second, which takes a fourth of its time. A GOGC that is set goes before this. It is an init, since most
// packages of tests have no TestMain.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}
