package command_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestDeclinedInACoding: --declined reads what an answer says, however it is encoded on its way, at each command that judges it; what
// cannot be decoded is printed as it is.
func TestDeclinedInACoding(t *testing.T) {
	t.Parallel()
	const declined, paid = `{"resultCode":"Refused"}`, `{"resultCode":"Authorised"}`
	pack := func(w io.WriteCloser, b *bytes.Buffer, text string) string {
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	for coding, encode := range map[string]func(string) string{
		"":         func(text string) string { return text },
		"gzip":     func(text string) string { b := &bytes.Buffer{}; return pack(gzip.NewWriter(b), b, text) },
		"x-gzip":   func(text string) string { b := &bytes.Buffer{}; return pack(gzip.NewWriter(b), b, text) },
		"deflate":  func(text string) string { b := &bytes.Buffer{}; return pack(zlib.NewWriter(b), b, text) },
		"identity": func(text string) string { return text },
	} {
		t.Run("coding "+coding, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				text := paid
				if bytes.Contains(body, []byte("bad")) {
					text = declined
				}
				w.Header().Set("Content-Type", "application/json")
				if coding != "" {
					w.Header().Set("Content-Encoding", coding)
				}
				_, _ = io.WriteString(w, encode(text))
			})
			j := filepath.Join(t.TempDir(), "j.db")
			with := []string{"--journal", j, "-H", "Accept-Encoding: gzip, x-gzip, deflate", "--declined", "/resultCode=Refused"}
			for data, status := range map[string]int{"bad": terminal.ExitRefused, "good": terminal.ExitOK} {
				send := append(commandtest.Fast("send", "POST", s.URL, "-d", `{"a":"`+data+`"}`, "--key", data), with...)
				for range 2 { // from the journal then
					commandtest.Run(t, send...).Want(t, status)
					if l := commandtest.Run(t, append(send, "--json")...).Want(t, status).Only(t); (l.Result == results.Declined) != (data == "bad") || !strings.Contains(string(l.Body), `"resultCode"`) {
						t.Errorf("%+v, body %s", l, l.Body)
					}
				}
			}
			file := commandtest.WriteFile(t, "in.csv", "id\nbad\ngood\n")
			for range 2 {
				for _, l := range commandtest.Run(t, append(commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}"), with...)...).Want(t, terminal.ExitRefused).Lines(t) {
					if (l.Result == results.Declined) != (l.Key == "idemp:o:bad") || !strings.Contains(string(l.Body), `"resultCode"`) {
						t.Errorf("%+v, body %s", l, l.Body)
					}
				}
			}
			list := commandtest.Run(t, "journal", "list", "--json", "--journal", j, "--declined", "/resultCode=Refused", "--result", "declined").Want(t, terminal.ExitOK).Out
			if strings.Count(list, "\n") != 2 || strings.Contains(list, "good") {
				t.Errorf("declined:\n%s", list)
			}
			if s.Sends.Load() != 4 {
				t.Errorf("%d sends", s.Sends.Load())
			}
		})
	}
}
