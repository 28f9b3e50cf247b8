package batch_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/golden"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// received is a server that keeps the bodies it gets, by key, and their types.
type received struct {
	*commandtest.Counted
	mu     sync.Mutex
	bodies map[string]string
	kinds  map[string]bool
}

func receiving(t *testing.T) *received {
	v := &received{bodies: map[string]string{}, kinds: map[string]bool{}}
	v.Counted = commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.bodies[r.Header.Get("Idempotency-Key")] = string(body)
		v.kinds[r.Header.Get("Content-Type")] = true
		w.WriteHeader(http.StatusCreated)
	})
	return v
}

// A template spells nested JSON: cells in strings are text whatever they hold, and
// numbers keep their digits.
func TestBatchBody(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	file := commandtest.WriteFile(t, "in.csv", "id,amount,paid,note\n"+
		"a,12.50,true,\"say \"\"hi\"\" \\ and\nmore \u2028 <b>\"\n"+
		"b,123456789012345678901234567890.10,false,\n"+
		"c,-1e400,true,\"\"\"},\"\"amount\"\":0\"\n")
	template := `{"amount": {amount:number}, "ok":{paid:bool}, "meta":{"order":"no {id}/{id}", "list":[{amount:number},"{{{note}}}"]}}`
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--body"}
	commandtest.Run(t, append(args, template)...).Want(t, terminal.ExitOK)
	want := map[string]string{
		"idemp:o:a": `{"amount": 12.50, "ok":true, "meta":{"order":"no a/a", "list":[12.50,"{say \"hi\" \\ and\nmore \u2028 <b>}"]}}`,
		"idemp:o:b": `{"amount": 123456789012345678901234567890.10, "ok":false, "meta":{"order":"no b/b", "list":[123456789012345678901234567890.10,"{}"]}}`,
		"idemp:o:c": `{"amount": -1e400, "ok":true, "meta":{"order":"no c/c", "list":[-1e400,"{\"},\"amount\":0}"]}}`,
	}
	for key, body := range want {
		if s.bodies[key] != body {
			t.Errorf("%s: sent\n%s\nwant\n%s", key, s.bodies[key], body)
		}
	}
	if !s.kinds["application/json"] || len(s.kinds) != 1 {
		t.Errorf("content types %v", s.kinds)
	}
	// The same template from a file is the same body, so that nothing is sent again.
	commandtest.Run(t, append(args, "@"+commandtest.WriteFile(t, "body.json", template+"\n"))...).Want(t, terminal.ExitOK)
	if n := s.Sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
}

// A form has the columns in their order, called what the header calls them, and works
// where the API takes nothing else.
func TestBatchForm(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []url.Values
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if err := r.ParseForm(); err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.PostForm.Get("amount") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got = append(got, r.PostForm)
		w.WriteHeader(http.StatusOK)
	})
	file := commandtest.WriteFile(t, "in.csv", "amount,currency,metadata[order],description\n100,eur,o1,a+b & c=d\n200,usd,o2,\"ä\n%\"\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "order:{metadata[order]}", "--profile", "stripe", "--form", "--workers", "1"}
	commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	commandtest.Run(t, append(args, "-H", "Content-Type: application/x-www-form-urlencoded")...).Want(t, terminal.ExitOK)
	want := []url.Values{
		{"amount": {"100"}, "currency": {"eur"}, "metadata[order]": {"o1"}, "description": {"a+b & c=d"}},
		{"amount": {"200"}, "currency": {"usd"}, "metadata[order]": {"o2"}, "description": {"ä\n%"}},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	dry := commandtest.Run(t, append(args, "--dry-run", "--new-journal", "--journal", file+".other.db")...).Want(t, terminal.ExitOK)
	if !strings.Contains(dry.Out, `"body":"amount=100&currency=eur&metadata%5Border%5D=o1&description=a%2Bb+%26+c%3Dd"`) {
		t.Errorf("stdout %s", dry.Out)
	}
}

// Whatever is wrong with a template, or with a cell for it, is said before anything
// is sent. The golden file has each message.
func TestGoldenBodyMessages(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	file := commandtest.WriteFile(t, "in.csv", "id,amount,paid,note\na,1,true,x\nb,,no,y\nc,1.,TRUE,z\nd,007,,z\n")
	ndjson := commandtest.WriteFile(t, "in.ndjson", "{\"id\":1}\n")
	null := commandtest.WriteFile(t, "null.ndjson", "{\"id\":1,\"a\":{\"b\":null}}\n{\"id\":2,\"a\":{}}\n{\"id\":3,\"a[b]\":1,\"a\":{\"b\":2}}\n{\"id\":4,\"\":1}\n")
	template := commandtest.WriteFile(t, "body.json", `{"a":{amount}}`)
	long := commandtest.WriteFile(t, "long.json", `"`+strings.Repeat("x", input.BodyFileBytesMax)+`"`)
	names := strings.NewReplacer(file, "in.csv", null, "null.ndjson", ndjson, "in.ndjson", template, "body.json", long, "long.json")
	var all strings.Builder
	for _, args := range [][]string{
		{file, "--body", ""}, {file, "--body", " \n"}, {file, "--body", "@" + file + "x"}, {file, "--body", "@" + template}, {file, "--body", "@" + long},
		{file, "--body", `{"a":{amount}}`}, {file, "--body", `{"a":{amount:numbr}}`}, {file, "--body", `{"a":{amount:number`}, {file, "--body", `{'a':1}`},
		{file, "--body", `{"a":"{id"}`}, {file, "--body", `{"a":"}"}`}, {file, "--body", `{"a":"{}"}`}, {file, "--body", `{"{id}":1}`}, {file, "--body", `{"{id}" :1}`},
		{file, "--body", `{"a":1{amount:number}}`}, {file, "--body", `{"a":-{amount:number}}`}, {file, "--body", `{ {id:number}:1}`},
		{file, "--body", `{"a":"\u{id}0041"}`}, {file, "--body", `{"a":"\{id}"}`}, {file, "--body", `{"a":1,}`}, {file, "--body", `{"a":1}{"b":2}`}, {file, "--body", `{"a`},
		{file, "--body", "{\"a\":\"\xff\"}"},
		{file, "--body", `{"a":"{sum}"}`}, {file, "--body", `{"a":"{amount:number}"}`}, {file, "--body", `{"a":{sum:number}}`},
		{file, "--body", `{"a":{amount:number}}`}, {file, "--body", `{"a":{paid:bool}}`},
		{file, "--body", `{"a":[{"b":null}]}`, "--form"}, {file, "--body", `{"a":{"b":[]}}`, "--form"}, {file, "--body", `["{id}"]`, "--form"}, {file, "--body", `{}`, "--number", "amount"}, {file, "--form", "--number", "amount"},
		{file, "--form", "-H", "Content-Type: application/json"}, {file, "-H", "Content-Type: application/x-www-form-urlencoded; charset=utf-8"},
		{file, "--profile", "stripe", "--number", "amount"}, {file, "--profile", "stripe", "-H", "Content-Type: application/json"},
		{ndjson, "--body", `{}`}, {null, "--form"}, {ndjson, "--number", "id"},
	} {
		got := commandtest.Run(t, append([]string{"batch", "--url", s.URL, "--key", "o:{id}"}, args...)...).Want(t, terminal.ExitUsage)
		if got.Out != "" {
			t.Errorf("%q: stdout %q", args, got.Out)
		}
		fmt.Fprintf(&all, "%s\n%s\n", names.Replace(strings.Join(words.Quoted(args), " ")), names.Replace(got.Err))
	}
	golden.Compare(t, "body-messages", all.String())
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
