package input

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Ends of lines are found wherever a read ends.
func TestCRReader(t *testing.T) {
	t.Parallel()
	const text = "a,b\r\"x\ry\",1\r\n\"\"\"\r\",2\r\rz"
	want := "a,b\n\"x\ry\",1\r\n\"\"\"\r\",2\n\nz"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		form := textForm{cr: true}
		if _, err := io.CopyBuffer(struct{ io.Writer }{&out}, struct{ io.Reader }{form.reader(iotest.OneByteReader(strings.NewReader(text)))}, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("read by %d: %q, want %q", size, out.String(), want)
		}
	}
}
