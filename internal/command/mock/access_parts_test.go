package mock

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/golden"
	"github.com/oncehttp/oncehttp/mockserver"
)

// Each line as it is written: the golden file has every kind of fault and what a
// client could try to break a line with.
func TestGoldenAccessLog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 23, 59, 59, 123_456_789, time.FixedZone("", 3600))
	var all bytes.Buffer
	for _, a := range []mockserver.Access{
		{Method: "POST", Path: "/payments", Key: "idemp:order:u1:o1", Status: 201, Bytes: 61, Took: 1_234_567},
		{Method: "POST", Path: "/payments", Key: "idemp:order:u1:o1", Status: 201, Bytes: 61, Took: 999, Replay: true},
		{Method: "GET", Path: "/payments/<x>&%0A", Status: 404, Bytes: 80, Took: time.Second},
		{Method: "M\"\n{", Path: "/\xff\"\\\r\n", Key: "k\"\n{\"status\":200}", Took: 1},
		{Method: "POST", Path: "/" + strings.Repeat("é", 600), Key: strings.Repeat("k", 1001)},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Answer}, Status: 503},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Answer, Status: 429, RetryAfter: "2"}, Status: 429},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.AnswerAfter, Status: 500}, Status: 500},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Hang}},
		{Method: "POST", Path: "/", Fault: mockserver.Fault{Kind: mockserver.Duplicate}, Status: 201},
	} {
		a.Begun = at
		text := accessText(a)
		if bytes.Count(text, []byte("\n")) != 1 || !json.Valid(text) || len(text) > 4*accessTextMax {
			t.Errorf("%d bytes: %s", len(text), text)
		}
		all.Write(text)
	}
	golden.Compare(t, "access-log", all.String())
}

// fullDisk counts, and fails from the second call on.
type fullDisk struct{ calls, bytes int }

// Write fails from the second call on.
func (w *fullDisk) Write(b []byte) (int, error) {
	if w.calls++; w.calls > 1 {
		return 0, errors.New("no space left")
	}
	w.bytes += len(b)
	return len(b), nil
}

// A log that is full, or that cannot be written, says so once, and the mock goes on.
func TestAccessLogStops(t *testing.T) {
	t.Parallel()
	line := accessText(mockserver.Access{})
	for _, tt := range []struct {
		left  int64
		calls int
		want  string
	}{
		{2*int64(len(line)) - 1, 1, "the access log is full (1073741824 bytes); nothing more is written to it\n"},
		{3 * int64(len(line)), 2, "the access log: no space left; nothing more is written to it\n"},
	} {
		var w fullDisk
		var errs strings.Builder
		l := &accessLog{w: &w, left: tt.left, stderr: &errs}
		for range 5 {
			l.add(mockserver.Access{})
		}
		if w.calls != tt.calls || w.bytes != len(line) || errs.String() != tt.want {
			t.Errorf("%d calls, %d bytes, stderr %q; want %d, %d, %q", w.calls, w.bytes, errs.String(), tt.calls, len(line), tt.want)
		}
	}
}
