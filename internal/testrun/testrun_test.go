package testrun

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// All is tested in CI, and where ONCEHTTP_WHOLE is 1; ONCEHTTP_WHOLE=0 goes before CI.
func TestWhole(t *testing.T) {
	for _, c := range []struct {
		ci, set string
		whole   bool
	}{{"", "", false}, {"true", "", true}, {"1", "", true}, {"false", "", false}, {"0", "", false}, {"", "1", true}, {"true", "0", false}} {
		t.Setenv("CI", c.ci)
		t.Setenv("ONCEHTTP_WHOLE", c.set)
		want, wantSome := 2, []int{1, 4}
		if c.whole {
			want, wantSome = 7, []int{1, 2, 3, 4, 5}
		}
		if n, some := N(2, 7), Some([]int{1, 2, 3, 4, 5}, 3); n != want || !slices.Equal(some, wantSome) {
			t.Errorf("CI=%q, ONCEHTTP_WHOLE=%q: got %d and %v, want %d and %v", c.ci, c.set, n, some, want, wantSome)
		}
	}
}

// A folder goes with its test, and the flag of whoever runs the tests goes before AtOnce.
func TestDirAndAtOnce(t *testing.T) {
	var dir string
	t.Run("folder", func(t *testing.T) {
		dir = Dir(t)
		if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s stands after its test: %v", dir, err)
	}
	parallel := flag.Lookup("test.parallel").Value
	before := parallel.String()
	defer func() { _ = parallel.Set(before) }() // it was its value
	_ = parallel.Set(strconv.Itoa(runtime.GOMAXPROCS(0)))
	AtOnce(1000)
	if got := parallel.String(); got != "1000" {
		t.Errorf("AtOnce(1000) gives %s", got)
	}
	AtOnce(2000)
	if got := parallel.String(); got != "1000" {
		t.Errorf("AtOnce(2000) beside -parallel 1000 gives %s", got)
	}
}
