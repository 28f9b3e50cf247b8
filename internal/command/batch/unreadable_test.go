package batch_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestUnreadableAnswer: an answer of 2xx in which --declined cannot be looked for is unknown, and without --declined it is done with a doubt. A byte order mark is passed over.
func TestUnreadableAnswer(t *testing.T) {
	t.Parallel()
	const refused = `{"status":"FAILED"}`
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(refused))
	_ = w.Close()
	wide := "\xff\xfe" + strings.Join(strings.Split(refused, ""), "\x00") + "\x00"
	for name, c := range map[string]struct {
		body     string
		declined results.Result // with --declined
		doubt    string         // without
	}{
		"plain":              {refused, results.Declined, "/status=FAILED"},
		"a mark":             {"\ufeff" + refused, results.Declined, "/status=FAILED"},
		"UTF-16":             {wide, results.Unknown, "cannot be read"},
		"a comma too much":   {`{"status":"FAILED",}`, results.Unknown, "cannot be read"},
		"a prefix":           {")]}',\n" + refused, results.Unknown, "cannot be read"},
		"compressed":         {zipped.String(), results.Unknown, "cannot be read"},
		"a text":             {"OK", results.Done, ""},
		"XML":                {"<ok/>", results.Done, ""},
		"Latin-1, a success": {"{\"payee\":\"M\xfcller\"}", results.Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if name == "a text" || name == "XML" {
					w.Header().Set("Content-Type", "text/plain")
				}
				_, _ = w.Write([]byte(c.body))
			})
			file := commandtest.WriteFile(t, "in.csv", "id\na\n")
			args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
			with := commandtest.Run(t, append(args, "--declined", "/status=FAILED", "--journal", t.TempDir()+"/a.db")...)
			if l := with.Only(t); l.Result != c.declined || l.Result == results.Unknown && (with.Status != terminal.ExitUnknown || !strings.Contains(l.Why(), "cannot be read as JSON, so that --declined was not looked for")) {
				t.Errorf("with --declined: %+v", l)
			}
			out := t.TempDir() + "/out"
			l := commandtest.Run(t, append(args, "--new-journal")...).Want(t, terminal.ExitOK).Only(t)
			if l.Result != results.Done || !strings.Contains(l.Doubt, c.doubt) || (c.doubt == "") != (l.Doubt == "") {
				t.Errorf("without: %+v", l)
			}
			commandtest.Run(t, append(args, "--out", out)...)
			if text, err := os.ReadFile(out); err != nil || !utf8.Valid(text) || !json.Valid(text) {
				t.Errorf("the line is no JSON in UTF-8: %q, %v", text, err)
			}
		})
	}
}

// TestDoubtOfA202: a 202 whose answer has words against a success has a doubt, and none for a word that leaves the end open, or for little content.
func TestDoubtOfA202(t *testing.T) {
	t.Parallel()
	for body, doubt := range map[string]string{
		`{"status":"refused"}`: "/status=refused", `{"data":null,"errors":[{"message":"insufficient funds"}]}`: "/errors/0/message=insufficient funds",
		`{"success":false,"error":"limit"}`: "/error=limit", `{"status":"pending"}`: "", `{"state":"PROCESSING"}`: "", `{}`: "", ``: "",
		`{"pad":"` + strings.Repeat("x", 2<<20) + `"}`: "no words were looked for in it",
	} {
		t.Run(body[:min(len(body), 30)], func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte(body))
			})
			file := commandtest.WriteFile(t, "in.csv", "id\na\n")
			got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}").Want(t, terminal.ExitOK)
			if l := got.Only(t); l.Result != results.Accepted || !strings.Contains(l.Doubt, doubt) || (doubt == "") != (l.Doubt == "") || strings.Contains(got.Err, "1 of the accepted: the answer has ") != (doubt != "") {
				t.Errorf("%+v; stderr %q", l, got.Err)
			}
		})
	}
}

// TestDeclinedPending: where --declined names a word such as pending, the next step says that the operation may still succeed.
func TestDeclinedPending(t *testing.T) {
	t.Parallel()
	for word, open := range map[string]bool{"pending": true, "failed": false} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"` + word + `"}`)) })
		file := commandtest.WriteFile(t, "in.csv", "id\na\n")
		got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--declined", "/status="+word).Want(t, terminal.ExitRefused).Err
		if !strings.Contains(got, "1 declined (200): ") || strings.Contains(got, "these may still succeed: ask the API what came of them before any is sent under another key; --generation 2") != open {
			t.Errorf("%s: %q", word, got)
		}
	}
}
