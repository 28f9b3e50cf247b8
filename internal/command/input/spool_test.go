package input

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// A spool gives back what was written, in memory and in a file, as often as it is
// read.
func TestSpool(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 10, 1 << 20} {
		s := &Spool{Dir: t.TempDir(), Limit: limit}
		var want strings.Builder
		for i := range 100 {
			fmt.Fprint(io.MultiWriter(s, &want), i, " ")
		}
		for range 2 {
			if got, err := io.ReadAll(s.Reader()); err != nil || string(got) != want.String() {
				t.Errorf("limit %d: %q, %v", limit, got, err)
			}
		}
		if inFile := s.file != nil; inFile == (limit == 1<<20) {
			t.Errorf("limit %d: in a file: %t", limit, inFile)
		}
		s.Close()
	}
	if _, err := (&Spool{Dir: "/no/such/folder"}).Write([]byte("x")); err == nil || strings.Contains(err.Error(), "/no/such") {
		t.Errorf("%v", err)
	}
}
