package session_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// repeating serves an answer to each request, but to the first ones: their connections are closed.
func repeating(t *testing.T, lost int32, status int) *httptest.Server {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) <= lost {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"code":"order_closed"}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestWhatAnAnswerMeansIsTaught: where an operation stays unknown since nobody knows what its answer means, the error of send and the message of
// batch say how that is said; where the profile knows, or a person cannot help, they do not.
func TestWhatAnAnswerMeansIsTaught(t *testing.T) {
	t.Parallel()
	const conflict, refusal = "a 409 that comes again may be a refusal of the business", "after a lost answer settles nothing"
	for name, c := range map[string]struct {
		lost, status int
		profile      string
		want         string
	}{
		"409":                       {0, 409, "draft-07", conflict},
		"409, keys quoted":          {0, 409, "draft-07-quoted", conflict},
		"409 that is in progress":   {0, 409, "modern-treasury", ""},
		"409, nothing of it known":  {0, 409, "brex", conflict},
		"422 after a lost answer":   {1, 422, "draft-07", "a 422 " + refusal},
		"404 after a lost answer":   {1, 404, "draft-07", "a 404 " + refusal},
		"401 after a lost answer":   {1, 401, "draft-07", ""},
		"423":                       {0, 423, "draft-07", "a 423 does not say whether anything happened"},
		"499":                       {0, 499, "draft-07", ""},
		"429":                       {0, 429, "draft-07", ""},
		"503":                       {0, 503, "draft-07", ""},
		"422 of the first attempt":  {0, 422, "draft-07", ""},
		"nothing but lost attempts": {9, 422, "draft-07", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			few := []string{"--profile", c.profile, "--max-attempts", "3", "--min-delay", "1ms", "--max-delay", "1ms"}
			s := repeating(t, int32(c.lost), c.status)
			sent := commandtest.Run(t, append([]string{"send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", filepath.Join(dir, "s.db")}, few...)...)
			s = repeating(t, int32(c.lost), c.status)
			file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
			batched := commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--journal", filepath.Join(dir, "b.db")}, few...)...)
			for _, got := range []string{sent.Err, batched.Out} {
				if strings.Contains(got, "for what is begun from then on, say what such an answer means: --already-done") != (c.want != "") || !strings.Contains(got, c.want) {
					t.Errorf("want %q in\n%s", c.want, got)
				}
			}
			if strings.Contains(batched.Err, "where the same answer comes again, ask the API what came of them") != (c.want != "") {
				t.Errorf("the summary of batch: %s", batched.Err)
			}
			if c.want != "" && (sent.Status != terminal.ExitUnknown || batched.Status != terminal.ExitUnknown || strings.Count(sent.Err, "\n") != 1) {
				t.Errorf("%d, %d: %s", sent.Status, batched.Status, sent.Err)
			}
		})
	}
}

// TestNewProfileAsItIs: the output of profile new works: a request is sent once, and held where its answer is lost.
func TestNewProfileAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "my-api.json")
	if err := os.WriteFile(path, []byte(commandtest.Skeleton(t, "my-api")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := repeating(t, 0, 201)
	commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--profile", path, "--journal", path+".a.db").Want(t, terminal.ExitOK)
	s = repeating(t, 1, 201)
	got := commandtest.Run(t, "send", "POST", s.URL, "-d", "{}", "--profile", path, "--key", "k", "--journal", path+".b.db").Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "after 1 attempt") {
		t.Errorf("%s", got.Err)
	}
}

// TestTokenProfileWithoutMethods: the mock hands out a token by a profile file that names no methods, and honours it.
func TestTokenProfileWithoutMethods(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteProfile(t, "tokens")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Replace(string(text), `"token": null`, `"token": {"value": {"path": "/tokens?purpose={path}", "pointer": "/data/token"}, "source": "us"}`, 1)
	said = strings.Replace(said, `"methods": {"value": ["POST"], "source": "us"}`, `"methods": null`, 1)
	if err := os.WriteFile(path, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := profile.LoadFile(path)
	if err != nil || len(p.Methods) > 0 || p.Token == nil {
		t.Fatalf("%+v, %v", p, err)
	}
	m := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	got := commandtest.Run(t, "batch", commandtest.WriteFile(t, "in.csv", "id\n1\n2\n"), "--url", m.URL()+"/payments", "--key", "o:{id}", "--profile", path, "--workers", "1", "--min-delay", "1ms", "--max-delay", "1ms").Want(t, terminal.ExitOK)
	if s := m.Ledger().Snapshot(); s.Effects != 2 || s.Sends != 3 || len(s.Violations) > 0 {
		t.Errorf("%+v\n%s", s, got.Out)
	}
}

// TestGraphQLFailureIsTaught: a failure of a GraphQL API in a 200 is held, and batch and send name the flags that tell such answers apart; with
// them it is declined.
func TestGraphQLFailureIsTaught(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"errors":[{"message":"no","extensions":{"code":"NO_FUNDS"}}],"data":null}`)
	})
	const cause, lesson = "answered 200 with errors and no data, as a GraphQL API says that it failed; ", "say what such answers mean: --done '/data/FIELD=TEXT', beside it --declined '/errors/0/extensions/code=TEXT', which alone does not judge such an answer, and --unknown"
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), "id\na\n")
	args := []string{"batch", file, "--url", s.URL + "/api", "--key", "o:{id}", "--body", `{"query":"query {{ pay(id: \"{id}\") {{ id }} }}"}`}
	if got := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown).Out; !strings.Contains(got, cause) || !strings.Contains(got, lesson) || !strings.Contains(got, `"result":"held"`) {
		t.Errorf("batch: %s", got)
	}
	journal := filepath.Join(filepath.Dir(file), "send.db")
	send := []string{"send", "POST", s.URL + "/api", "-d", `{"query":"{ pay }"}`, "--key", "k", "--journal", journal}
	if got := commandtest.Run(t, send...).Want(t, terminal.ExitUnknown).Err; !strings.Contains(got, cause) || !strings.Contains(got, lesson) {
		t.Errorf("send: %s", got)
	}
	args = append(args, "--journal", filepath.Join(filepath.Dir(file), "other.db"), "--new-journal", "--done", "/data/pay/status=ok", "--declined", "/errors/0/extensions/code=NO_FUNDS")
	if got := commandtest.Run(t, args...).Want(t, terminal.ExitRefused).Out; !strings.Contains(got, `"result":"declined"`) {
		t.Errorf("batch with the flags: %s", got)
	}
}
