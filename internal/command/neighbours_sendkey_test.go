package command_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// A request that names its own key is sent under that key alone, however it names it and wherever the body comes from. Where the
// key is not to be read, or is not there, nothing is sent.
func TestNeighbourSendKey(t *testing.T) {
	t.Parallel()
	const file = "@FILE"
	for name, r := range map[string]struct {
		profile, data, path, stdin string
		args                       []string
		key                        string // "" where nothing may be sent
	}{
		"a file":                    {profile: "square", data: file, args: []string{`{"idempotency_key":"k1"}`}, key: "k1"},
		"stdin":                     {profile: "square", data: "@-", stdin: `{"a":1,"idempotency_key":"k1"}`, key: "k1"},
		"a nested member":           {profile: "body:/meta/key", data: `{"meta":{"a":1,"key":"k1"}}`, key: "k1"},
		"a member with a slash":     {profile: "body:/a~1b", data: `{"a/b":"k1"}`, key: "k1"},
		"of a list":                 {profile: "body:/orders/0/id", data: `{"orders":[{"id":"k1"},{"id":"k2"}]}`, key: "k1"},
		"an escaped text":           {profile: "square", data: `{"idempotency_key":"k\u0031"}`, key: "k1"},
		"PUT":                       {profile: "airwallex", data: `{"request_id":"k1"}`, args: []string{"-X", "PUT"}, key: "k1"},
		"a type that ends in +json": {profile: "square", data: `{"idempotency_key":"k1"}`, args: []string{"-H", "Content-Type: application/vnd.a+json"}, key: "k1"},
		"a type with a charset":     {profile: "square", data: `{"idempotency_key":"k1"}`, args: []string{"-H", "content-type: application/json; charset=utf-8"}, key: "k1"},
		"a type that is no JSON":    {profile: "square", data: `{"idempotency_key":"k1"}`, args: []string{"-H", "Content-Type: text/plain"}, key: "k1"},
		"null":                      {profile: "square", data: `{"idempotency_key":null}`},
		"empty":                     {profile: "square", data: `{"idempotency_key":""}`},
		"an object":                 {profile: "square", data: `{"idempotency_key":{"k":"k1"}}`},
		"twice":                     {profile: "square", data: `{"idempotency_key":"k1","idempotency_key":"k2"}`},
		"no JSON":                   {profile: "square", data: `{"idempotency_key":"k1"`},
		"no body":                   {profile: "square"},
		"too long":                  {profile: "square", data: `{"idempotency_key":"` + strings.Repeat("k", 46) + `"}`},
		"too long, --key":           {profile: "square", data: `{"idempotency_key":"k1"}`, args: []string{"--key", strings.Repeat("k", 46)}},
		"--key is half of it":       {profile: "square", data: `{"idempotency_key":"k1"}`, args: []string{"--key", "k"}},
		"another member":            {profile: "square", data: `{"a":{"idempotency_key":"k1"}}`},
		"another place's key":       {profile: "square", data: `{"a":1}`, path: "?idempotency_key=k1"},
		"a header that is not read": {profile: "square", data: `{"idempotency_key":"k1"}`, args: []string{"-H", "Idempotency-Key: k2"}},
		"form, joined":              {profile: "form:token", data: "a=1", args: []string{"-d", "token=k1"}, key: "k1"},
		"form, percent-encoded":     {profile: "form:token", data: "token=k%2F1", key: "k/1"},
		"form, a nested name":       {profile: "form:meta[key]", data: "meta%5Bkey%5D=k1", key: "k1"},
		"form, twice":               {profile: "form:token", data: "token=k1&token=k2"},
		"form, --key another":       {profile: "form:token", data: "token=k1", args: []string{"--key", "k2"}},
		"form, as JSON":             {profile: "form:token", data: `{"token":"k1"}`},
		"query, percent-encoded":    {profile: "query:token", data: "{}", path: "?token=k%2F1", key: "k/1"},
		"query, behind others":      {profile: "query:token", data: "{}", path: "?a=1&token=k1&b=2", key: "k1"},
		"query, no body":            {profile: "query:token", path: "?token=k1", args: []string{"-X", "DELETE"}, key: "k1"},
		"query, twice":              {profile: "query:token", data: "{}", path: "?token=k1&token=k2"},
		"query, --key another":      {profile: "query:token", data: "{}", path: "?token=k1", args: []string{"--key", "k2"}},
		"a header, small":           {profile: "draft-07", data: "{}", args: []string{"-H", "idempotency-key: k1"}, key: "k1"},
		"a header, quoted":          {profile: "draft-07-quoted", data: "{}", args: []string{"-H", `Idempotency-Key: "k1"`}, key: "k1"},
		"a header of a file":        {profile: "draft-07", data: "{}", args: []string{"-H", "HEADERS"}, key: "k1"},
		"--key-header, the same":    {profile: "draft-07", data: "{}", args: []string{"--key-header", "X-Request-ID", "-H", "X-Request-Id: k1"}, key: "k1"},
		"--key-header, --key too":   {profile: "draft-07", data: "{}", args: []string{"--key-header", "X-Request-ID", "-H", "X-Request-Id: k1", "--key", "k2"}},
		"a header, --key another":   {profile: "stripe", data: "{}", args: []string{"-H", "Idempotency-Key: k1", "--key", "k2"}},
		"two headers":               {profile: "stripe", data: "{}", args: []string{"-H", "Idempotency-Key: k1", "-H", "Idempotency-Key: k2"}},
		"an object twice":           {profile: "body:/meta/key", data: `{"meta":{"key":"k1"},"meta":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
				got = append(got, req.Header.Get("Idempotency-Key")+req.Header.Get("X-Request-Id"))
				_, _ = w.Write([]byte("{}"))
			})
			dir := t.TempDir()
			p, data, args := profileAt(t, dir, r.profile), r.data, r.args
			if data == file {
				data, args = "@"+commandtest.WriteFile(t, dir+"/body.json", args[0]), nil
			}
			for i, a := range args {
				if a == "HEADERS" {
					args[i] = "@" + commandtest.WriteFile(t, dir+"/headers.txt", "Idempotency-Key: k1\n")
				}
			}
			if data != "" {
				args = append([]string{"-d", data}, args...)
			}
			call := append([]string{"send", s.URL + "/" + r.path, "--profile", p, "--journal", dir + "/j.db"}, args...)
			if data == "" && len(r.args) == 0 {
				call = append(call, "-X", "POST")
			}
			ran := commandtest.RunWith(t, r.stdin, call...)
			listed := commandtest.Run(t, "journal", "list", "--journal", dir+"/j.db", "--json")
			if r.key == "" {
				if ran.Want(t, terminal.ExitUsage); s.Sends.Load() != 0 || strings.Contains(listed.Out, `"key"`) {
					t.Errorf("%d sends, %q in the journal after %q", s.Sends.Load(), listed.Out, ran.Err)
				}
				return
			}
			ran.Want(t, terminal.ExitOK)
			if s.Sends.Load() != 1 || strings.Contains(ran.Err, "key: ") {
				t.Errorf("%d sends, stderr %q", s.Sends.Load(), ran.Err)
			}
			if !strings.Contains(listed.Out, fmt.Sprintf(`"key":%q`, r.key)) || strings.Count(listed.Out, `"key":`) != 1 {
				t.Errorf("the journal has %s", listed.Out)
			}
			again := commandtest.RunWith(t, r.stdin, call...).Want(t, terminal.ExitOK)
			if s.Sends.Load() != 1 || again.Out != ran.Out {
				t.Errorf("the same again: %d sends, %q", s.Sends.Load(), again.Out)
			}
			if inHeader := strings.HasPrefix(name, "a header") || strings.HasPrefix(name, "--key-header"); len(got) != 1 || inHeader == (got[0] == "") {
				t.Errorf("the headers for keys: %q", got)
			}
		})
	}
}

// profileAt is a profile by its name, or a file with one whose keys travel in PLACE:NAME.
func profileAt(t *testing.T, dir, p string) string {
	t.Helper()
	place, name, own := strings.Cut(p, ":")
	if !own {
		return p
	}
	text := strings.ReplaceAll(commandtest.PlaceProfile, "PLACE", place)
	return commandtest.WriteFile(t, dir+"/"+place+".json", strings.ReplaceAll(text, `"name": "token"`, fmt.Sprintf(`"name": %q`, name)))
}

// What has its key in the request goes on under it after a lost answer: by send again, or by the journal's commands and work.
func TestNeighbourSendKeyGoesOn(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"send", "send --key", "journal resume", "batch"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			var bodies []string
			s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				if bodies = append(bodies, string(body)); len(bodies) == 1 {
					panic(http.ErrAbortHandler)
				}
				_, _ = w.Write([]byte(`{"id":1,"state":"completed"}`))
			})
			dir := t.TempDir()
			send := []string{"send", "POST", s.URL + "/api/1.0/pay", "--profile", "revolut-business", "-d", `{"request_id":"k1"}`, "--journal", dir + "/j.db"}
			commandtest.Run(t, commandtest.Fast(append(send, "--max-attempts", "1")...)...).Want(t, terminal.ExitUnknown)
			switch by {
			case "send":
				commandtest.Run(t, commandtest.Fast(send...)...).Want(t, terminal.ExitOK)
			case "send --key":
				commandtest.Run(t, commandtest.Fast(append(send, "--key", "k1")...)...).Want(t, terminal.ExitOK)
			case "journal resume":
				commandtest.Run(t, commandtest.Fast("journal", "resume", "k1", "--journal", dir+"/j.db")...).Want(t, terminal.ExitOK)
			default:
				rows := commandtest.WriteFile(t, dir+"/rows.ndjson", `{"request_id":"k1"}`+"\n")
				commandtest.Run(t, commandtest.Fast("batch", rows, "--url", s.URL+"/api/1.0/pay", "--key", "{request_id}", "--profile", "revolut-business", "--journal", dir+"/j.db")...).Want(t, terminal.ExitOK)
			}
			if len(bodies) != 2 || bodies[0] != bodies[1] {
				t.Errorf("sent: %q", bodies)
			}
			if listed := commandtest.Run(t, "journal", "list", "--journal", dir+"/j.db", "--json"); strings.Count(listed.Out, `"key":"k1"`) != 1 || strings.Count(listed.Out, `"key":`) != 1 {
				t.Errorf("the journal has %s", listed.Out)
			}
		})
	}
}

// A batch for an API that reads its keys in the body sends rows under the keys that stand there, and none where the template spells others.
func TestNeighbourBatchKeyInBody(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		profile, rows, key string
		args               []string
		status, sends      int
	}{
		"CSV":                            {"square", "idempotency_key,a\nk1,1\nk2,2\n", "{idempotency_key}", nil, terminal.ExitOK, 2},
		"CSV, another key":               {"square", "idempotency_key,a\nk1,1\nk2,2\n", "order:{a}", nil, terminal.ExitUsage, 0},
		"CSV, no such field":             {"square", "id,a\nk1,1\n", "{id}", nil, terminal.ExitUsage, 0},
		"CSV, a body":                    {"square", "id,a\nk1,1\n", "{id}", []string{"--body", `{"idempotency_key":"{id}"}`}, terminal.ExitOK, 1},
		"CSV, a column twice":            {"square", "idempotency_key,a,idempotency_key\nk1,1,k2\n", "{idempotency_key}", nil, terminal.ExitUsage, 0},
		"NDJSON":                         {"square", `{"idempotency_key":"k1"}` + "\n", "{/idempotency_key}", nil, terminal.ExitOK, 1},
		"NDJSON, twice":                  {"square", `{"idempotency_key":"k1","idempotency_key":"k2"}` + "\n", "{idempotency_key}", nil, terminal.ExitUsage, 0},
		"NDJSON, one without":            {"square", `{"idempotency_key":"k1"}` + "\n" + `{"id":"k2"}` + "\n", "{idempotency_key}", nil, terminal.ExitUsage, 0},
		"NDJSON, twice, by another name": {"square", `{"id":"k2","idempotency_key":"k1","idempotency_key":"k2"}` + "\n", "{id}", nil, terminal.ExitUsage, 0},
		"form":                           {"form:token", "token,a\nk1,1\n", "{token}", []string{"--form"}, terminal.ExitOK, 1},
		"query":                          {"query:token", "token,a\nk1,1\n", "{token}", []string{"--url", "URL/?token={token}"}, terminal.ExitOK, 1},
		"query, another":                 {"query:token", "token,a\nk1,1\n", "{token}", []string{"--url", "URL/?token={a}"}, terminal.ExitUsage, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
			dir := t.TempDir()
			kind := ".csv"
			if strings.HasPrefix(r.rows, "{") {
				kind = ".ndjson"
			}
			file := commandtest.WriteFile(t, dir+"/rows"+kind, r.rows)
			call := []string{"batch", file, "--url", s.URL + "/api/1.0/pay", "--key", r.key, "--profile", profileAt(t, dir, r.profile), "--journal", dir + "/j.db"}
			for _, a := range r.args {
				call = append(call, strings.ReplaceAll(a, "URL", s.URL))
			}
			if ran := commandtest.Run(t, call...).Want(t, r.status); int(s.Sends.Load()) != r.sends {
				t.Errorf("%d sends, want %d: %s", s.Sends.Load(), r.sends, ran.Err)
			}
		})
	}
}
