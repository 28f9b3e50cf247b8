package mock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/mockserver"
)

// The mock's access log: a line of JSON for each request, written before its answer
// is whole. It is bounded in each text and as a whole.

const (
	accessTextMax  = 1000 // bytes of a method, path or key
	accessBytesMax = 1 << 30
)

// accessLog is safe for concurrent use. If w is nil, there is no log.
type accessLog struct {
	mu     sync.Mutex
	w      io.Writer
	left   int64     // bytes still allowed to be written; 0: it has stopped
	stderr io.Writer // is told the reason once
	close  func() error
}

// AccessLine is one request. It has no query, header or body.
type AccessLine struct {
	Time   string  `json:"time"`
	Method string  `json:"method"`
	Path   string  `json:"path"`
	Key    string  `json:"key,omitempty"`
	Status int     `json:"status"` // 0: the connection was cut before an answer
	Bytes  int64   `json:"bytes"`  // of the answer's body
	MS     float64 `json:"ms"`
	Fault  string  `json:"fault,omitempty"`
	Replay bool    `json:"replay,omitempty"`
}

// checkAccess returns an error if the log of --access-log would go to the file of another flag, or to stdout together with the report on the client. Two
// writers of one file would spoil each other's text.
func (f *mockFlags) checkAccess() error {
	switch {
	case f.access == "":
		return nil
	case f.access == "-" && f.referee && f.report.Out == "":
		return errors.New("--access-log -: the referee's report goes to stdout, too; send one of them to a file (--out)")
	case f.access == "-":
		return nil
	}
	for flag, other := range map[string]string{"--out": f.report.Out, "--script": f.script, "--known-failing": f.report.Known} {
		if other != "" && terminal.SamePath(f.access, other) {
			return fmt.Errorf("--access-log %s is the same file as %s", f.access, flag)
		}
	}
	return nil
}

// openAccess opens the log of requests: stdout, or a file, to whose end it adds. Without --access-log the log has no writer, and gets no lines. It takes
// accessBytesMax bytes at most (l.left).
func (f *mockFlags) openAccess(s terminal.Streams) (*accessLog, error) {
	l := &accessLog{left: accessBytesMax, stderr: s.Err, close: func() error { return nil }}
	switch f.access {
	case "":
	case "-":
		l.w = s.Out
	default:
		file, err := os.OpenFile(f.access, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("--access-log %s: %w", f.access, words.Pathless(err))
		}
		l.w = file
		l.close = func() error {
			if err := file.Close(); err != nil {
				return fmt.Errorf("--access-log %s: %w", f.access, words.Pathless(err))
			}
			return nil
		}
	}
	return l, nil
}

// add writes the line of a request, whole. After the first error, or when the log is
// full, it writes no more: l.left (the bytes that the log may still take) is 0 then.
func (l *accessLog) add(a mockserver.Access) {
	text := accessText(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return
	}
	if int64(len(text)) > l.left {
		l.left = 0
		terminal.Say(l.stderr, "the access log is full (%d bytes); nothing more is written to it", int64(accessBytesMax))
		return
	}
	l.left -= int64(len(text))
	if _, err := l.w.Write(text); err != nil {
		l.left = 0
		terminal.Say(l.stderr, "the access log: %v; nothing more is written to it", words.Pathless(err))
	}
}

// accessText returns the line of one request for the access log, with its line end.
func accessText(a mockserver.Access) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(AccessLine{ // texts and numbers into memory: nothing can fail
		Time: a.Begun.UTC().Format("2006-01-02T15:04:05.000Z"), Method: atMost(a.Method), Path: atMost(a.Path), Key: atMost(a.Key),
		Status: a.Status, Bytes: a.Bytes, MS: math.Round(float64(a.Took)/float64(time.Microsecond)) / 1000,
		Fault: faultName(a.Fault), Replay: a.Replay,
	})
	return []byte(b.String())
}

// atMost returns at most accessTextMax bytes of a text, and "…" if it is longer.
func atMost(text string) string {
	if len(text) <= accessTextMax {
		return text
	}
	return strings.ToValidUTF8(text[:accessTextMax], "") + "…"
}

// faultName spells a fault as --faults does, without its argument, such as "reset" or "503-after" (first the effect, then a 503); "" for none.
func faultName(f mockserver.Fault) string {
	status := f.Status
	if status == 0 {
		status = 503 // the answer of a fault without a status
	}
	switch f.Kind {
	case mockserver.None:
		return ""
	case mockserver.Answer:
		return strconv.Itoa(status)
	case mockserver.AnswerAfter:
		return strconv.Itoa(status) + "-after"
	}
	return f.Kind.String()
}
