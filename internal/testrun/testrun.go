// Package testrun decides how tests run: the number of their rounds, the number of tests at once, the folder of their files, and when garbage
// is collected.
package testrun

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// Whole reports whether tests make all their rounds: ONCEHTTP_WHOLE is 1, or it is not set and CI is.
func Whole() bool {
	if set := os.Getenv("ONCEHTTP_WHOLE"); set != "" {
		return set == "1"
	}
	ci := os.Getenv("CI")
	return ci != "" && ci != "0" && ci != "false"
}

// N returns the number of rounds, seeds or histories of a test: whole if [Whole], else quick.
func N(quick, whole int) int {
	if Whole() {
		return whole
	}
	return quick
}

// Some returns all of the list in a whole test run, else each nth of them, from the first on. A short run so tries a sample of slow cases.
func Some[T any](all []T, nth int) []T {
	if Whole() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += nth {
		some = append(some, all[i])
	}
	return some
}

// AtOnce sets the greatest number of parallel tests at once, to n, unless -parallel sets it. It is at least the number of processors. If tests wait
// for other processes and for disks, more tests than processors run well. TestMain calls it.
func AtOnce(n int) {
	flag.Parse()
	// Without -parallel the flag has the number of processors.
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set(strconv.Itoa(max(n, runtime.GOMAXPROCS(0)))) // a number is always taken
	}
}

// memory is the file system in memory of Linux.
const memory = "/dev/shm"

// InMemory lets temporary folders be in memory, if the system has that. It is for tests of killed processes, of a client or of a
// command: these wait for the disk otherwise and see nothing of it. It is not for tests of the journal file itself. TestMain calls it.
func InMemory() {
	if roomy(memory) {
		_ = os.Setenv("TMPDIR", memory) // always takes this name and this value
	}
}

// Dir returns a new folder, as t.TempDir does, in memory if the system has that and space is left: see [InMemory].
func Dir(t testing.TB) string {
	t.Helper()
	if !roomy(memory) {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "oncehttp-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Clean(dir)
}
