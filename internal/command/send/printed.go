package send

import (
	"fmt"
	"io"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// head keeps the bytes written to it, up to one more than results.AnswerBytesMax.
type head []byte

// Write keeps the bytes up to the limit. It never fails.
func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), results.AnswerBytesMax+1-len(*h))]...)
	return len(p), nil
}

// print writes the answer to w as it comes in, and its body to kept, too, from which its result is told. With --include the head comes first. On a terminal the body's
// last line gets an end if it has none.
func (f *sendFlags) print(w io.Writer, resp *http.Response, kept io.Writer) error {
	if f.include {
		if _, err := fmt.Fprintf(w, "%s %s\r\n", resp.Proto, resp.Status); err != nil {
			return err
		}
		if err := f.Secret.Shown(resp.Header).Write(w); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\r\n"); err != nil {
			return err
		}
	}
	var end lastByte
	_, err := io.Copy(io.MultiWriter(w, kept, &end), resp.Body)
	if err == nil && end != 0 && end != '\n' && terminal.IsTerminal(w) {
		_, err = io.WriteString(w, "\n") // so that what is said on stderr has a line of its own
	}
	return err
}

// lastByte keeps the last byte written to it; 0 before any.
type lastByte byte

// Write implements io.Writer.
func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*l = lastByte(p[len(p)-1])
	}
	return len(p), nil
}
