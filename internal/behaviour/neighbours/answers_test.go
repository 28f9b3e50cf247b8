package neighbours_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	fatal(t, errors.Join(err, z.Close()))
	return b.String()
}

// A success is the API's unless it is a page or breaks off, however either is spelled, labelled or packed.
func TestNeighbourPages(t *testing.T) {
	t.Parallel()
	type answer struct {
		wiretest.Reply
		api bool
	}
	page := "<!DOCTYPE html><html><body>Scheduled maintenance</body></html>"
	zipped := "Content-Type: application/json\nContent-Encoding: gzip"
	for name, test := range map[string]answer{
		"in capitals":             {wiretest.Reply{Status: 200, Body: "<HTML><BODY>wait</BODY></HTML>"}, false},
		"behind white space":      {wiretest.Reply{Status: 201, Body: "\r\n\t <!doctype HTML>\n<p>wait"}, false},
		"behind a mark":           {wiretest.Reply{Status: 200, Body: "\ufeff" + page}, false},
		"behind a comment":        {wiretest.Reply{Status: 200, Body: "<!-- edge 7 -->\n" + page}, false},
		"XHTML":                   {wiretest.Reply{Status: 200, Body: `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>`}, false},
		"its head":                {wiretest.Reply{Status: 200, Body: "<head><title>wait</title></head>"}, false},
		"labelled as JSON":        {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: page}, false},
		"labelled as nothing":     {wiretest.Reply{Status: 200, Header: "Content-Type: application/octet-stream", Body: page}, false},
		"compressed":              {wiretest.Reply{Status: 200, Header: zipped, Body: gzipped(t, page)}, false},
		"larger than the bound":   {wiretest.Reply{Status: 200, Body: page + strings.Repeat(" ", 5000)}, false},
		"compressed beyond it":    {wiretest.Reply{Status: 200, Header: zipped, Body: gzipped(t, page+strings.Repeat(" ", 90000))}, false},
		"202":                     {wiretest.Reply{Status: 202, Body: page}, false},
		"206":                     {wiretest.Reply{Status: 206, Body: page}, false},
		"JSON that ends early":    {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: `{"id":"a`}, false},
		"a list that ends early":  {wiretest.Reply{Status: 200, Header: "Content-Type: application/json; charset=utf-8", Body: `[{"id":1},`}, false},
		"problem that ends early": {wiretest.Reply{Status: 200, Header: "Content-Type: application/vnd.api+json", Body: `{"data":`}, false},
		"compressed, ends early":  {wiretest.Reply{Status: 200, Header: zipped, Body: gzipped(t, `{"id":"a`)}, false},
		"empty":                   {wiretest.Reply{Status: 201}, true},
		"text":                    {wiretest.Reply{Status: 200, Header: "Content-Type: text/plain", Body: "ok <html>"}, true},
		"XML":                     {wiretest.Reply{Status: 200, Header: "Content-Type: application/xml", Body: `<?xml version="1.0"?><payment id="1"/>`}, true},
		"an element called so":    {wiretest.Reply{Status: 200, Header: "Content-Type: application/xml", Body: `<htmlPayment id="1"/>`}, true},
		"JSON text of a page":     {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: `"<html></html>"`}, true},
		"JSON with a page":        {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: `{"html":"<html>"}`}, true},
		"JSON lines":              {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: "{\"a\":1}\n{\"a\":2}\n"}, true},
		"JSON of its own":         {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: `{id:1}`}, true},
		"JSON, unlabelled":        {wiretest.Reply{Status: 200, Header: "Content-Type: text/plain; charset=utf-8", Body: `{"id":1}`}, true},
		"a document":              {wiretest.Reply{Status: 200, Header: "Content-Type: application/pdf", Body: "%PDF-1.7"}, true},
		"larger JSON":             {wiretest.Reply{Status: 200, Header: "Content-Type: application/json", Body: `{"a":"` + strings.Repeat("x", 5000) + `"}`}, true},
		"compressed JSON":         {wiretest.Reply{Status: 200, Header: zipped, Body: gzipped(t, `{"id":1}`)}, true},
		"303 with a page":         {wiretest.Reply{Status: 303, Header: "Location: /payments/1", Body: page}, false}, // as one that leads to a login page
		"303 without a page":      {wiretest.Reply{Status: 303, Header: "Location: /payments/1"}, false},
	} {
		for _, way := range []string{"default", "named", "Transport", "Resume", "after a lost answer"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { pages(t, test.Reply, test.api, strings.Contains(name, "ends early"), way) })
			})
		}
	}
}

// pages drives an operation to such an answer. One that breaks off is asked for again under the default profile, too.
func pages(t *testing.T, answer wiretest.Reply, api, broken bool, way string) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{answer}}
	want := 1
	switch {
	case way == "after a lost answer":
		w.Replies, want = []wiretest.Reply{{Err: wiretest.ErrLost}, answer}, 2
	case way == "named" && !api && answer.Status < 300:
		want = 2
	}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.MaxResponseBytes = 1000
		if way == "named" {
			cfg.Profile = bound("POST")
		}
	})
	req := clienttest.Post(t, "{}")
	req.Header.Set("Idempotency-Key", "k-1")
	req.Header.Set("Accept", "application/json, */*")
	var err error
	switch way {
	case "Transport":
		_, err = c.Transport().RoundTrip(req)
	case "Resume":
		fatal(t, c.Enqueue(req, ""))
		err = onePass(t, c)
	default:
		var resp *http.Response
		if resp, err = c.Do(req); err == nil {
			clienttest.Read(t, resp)
		}
	}
	if way == "Transport" && answer.Status == 303 && answer.Body == "" { // its callers follow it
		api = true
	}
	if (err == nil) != api {
		t.Errorf("%v, want an answer: %t", err, api)
	}
	if err != nil {
		clienttest.ExactlyOne(t, err)
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v", err)
		}
	}
	if n := w.Count(); n != want && !(broken && n >= want) {
		t.Errorf("%d sends, want %d", n, want)
	}
	if rec := clienttest.Lookup(t, c, "k-1"); api != (rec.State == persist.StateConfirmed) {
		t.Errorf("the record is %v (%s)", rec.State, rec.HoldReason)
	}
}

// A page counts as the API's where the request asks for one by name, and not where it takes anything or excludes it.
func TestNeighbourAccept(t *testing.T) {
	t.Parallel()
	for accept, api := range map[string]bool{
		"text/html": true, "TEXT/HTML;level=1": true, "application/json, text/*;q=0.1": true, "application/xhtml+xml": true, "application/json\ntext/html": true,
		"*/*": false, "": false, "application/*": false, "application/json": false, "text/html;q=0": false, "text/html;q=0.000, application/json": false, "text/plain": false,
		"application/html": false, "text/html2": false,
	} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: "<html></html>"}}}
			c, _ := clienttest.New(t, w, nil)
			req := clienttest.Post(t, "{}")
			for line := range strings.SplitSeq(accept, "\n") {
				req.Header.Add("Accept", line)
			}
			if _, err := c.DoKey(req, "k-1"); (err == nil) != api || w.Count() != 1 {
				t.Errorf("%v after %d sends, want an answer: %t", err, w.Count(), api)
			}
		})
	}
}

// A bare 4xx that only its status would make final proves that this send was refused, and in doubt nothing; text, JSON and what
// the profile calls the API's own are final.
func TestNeighbourBareRefusals(t *testing.T) {
	t.Parallel()
	own := bound("POST")
	own.Own.Bare = []int{404, 410}
	stored := bound("POST")
	stored.Stored.Client = []profile.Matcher{{Status: []int{400, 402, 404, 410}}}
	stored.Replay = []profile.Matcher{{Header: "X-Replayed"}}
	type kind struct {
		name  string
		reply wiretest.Reply
		bare  bool
	}
	kinds := []kind{
		{"empty", wiretest.Reply{Empty: true}, true}, {"a page", wiretest.Reply{Header: "Content-Type: text/html", Body: "<html>no</html>"}, true},
		{"a page as JSON", wiretest.Reply{Header: "Content-Type: application/json", Body: "<!doctype html>"}, true},
		{"a compressed page", wiretest.Reply{Header: "Content-Encoding: gzip", Body: gzipped(t, "<html>no</html>")}, true},
		{"marked as a replay", wiretest.Reply{Header: "X-Replayed: 1", Empty: true}, true},
		{"text", wiretest.Reply{Body: "not found"}, false}, {"JSON", wiretest.Reply{Header: "Content-Type: application/json", Body: "{}"}, false},
	}
	for _, status := range []int{400, 402, 404, 410, 418} {
		for _, k := range kinds {
			for name, p := range map[string]*profile.Profile{"default": nil, "own": own, "stored": stored} {
				for _, way := range []string{"fresh", "enqueued", "in doubt"} {
					t.Run(strings.Join([]string{http.StatusText(status), k.name, name, way}, "/"), func(t *testing.T) {
						t.Parallel()
						answer := k.reply
						answer.Status = status
						bare := k.bare && !(name == "own" && (status == 404 || status == 410))
						synctest.Test(t, func(t *testing.T) { refusal(t, answer, bare, p, way) })
					})
				}
			}
		}
	}
}

func refusal(t *testing.T, answer wiretest.Reply, bare bool, p *profile.Profile, way string) {
	w := &wiretest.Wire{Replies: []wiretest.Reply{answer}}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
	switch way {
	case "fresh":
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k-1")
		if bare && (!errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrRefused)) || !bare && (err != nil || resp.StatusCode != answer.Status) {
			t.Errorf("%v, %v", resp, err)
		}
		if w.Count() != 1 {
			t.Errorf("%d sends", w.Count())
		}
	case "in doubt":
		w.Replies = []wiretest.Reply{{Err: wiretest.ErrLost}, answer}
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k-1"); bare && !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v", err)
		}
		if rec := clienttest.Lookup(t, c, "k-1"); bare && rec.State.Final() {
			t.Errorf("it is %v", rec.State)
		}
	case "enqueued":
		fatal(t, c.Enqueue(clienttest.Post(t, "{}"), "k-1"))
		err := onePass(t, c)
		rec := clienttest.Lookup(t, c, "k-1")
		if bare != (rec.State == persist.StatePending) || bare != (err != nil) || bare && errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v, it is %v", err, rec.State)
		}
		if !bare || answer.Status != 404 || p != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Hour)
		defer cancel()
		_ = c.Run(ctx)
		if rec := clienttest.Lookup(t, c, "k-1"); rec.State != persist.StateHeld || w.Count() < 24*4-8 {
			t.Errorf("after its time it is %v, after %d sends", rec.State, w.Count())
		}
	}
}

// What a matcher looks for is found in a compressed answer, too; one that cannot be read settles nothing that its text decides.
func TestNeighbourCodings(t *testing.T) {
	t.Parallel()
	p := bound("POST")
	p.AlreadyDone = []profile.Matcher{{Status: []int{409}, Pointer: "/code", Equals: []string{"done"}}}
	p.Mismatch = []profile.Matcher{{Status: []int{409}, Pointer: "/code", Equals: []string{"other"}}}
	var deflated, raw bytes.Buffer
	z := zlib.NewWriter(&deflated)
	f, _ := flate.NewWriter(&raw, 9)
	_, _ = z.Write([]byte(`{"code":"done"}`))
	_, _ = f.Write([]byte(`{"code":"done"}`))
	fatal(t, errors.Join(z.Close(), f.Close()))
	for name, test := range map[string]struct {
		coding, body string
		status       int
		want         error // nil: the answer
	}{
		"gzip, done":             {"gzip", gzipped(t, `{"code":"done"}`), 409, nil},
		"GZIP, done":             {"GZIP", gzipped(t, `{"code":"done"}`), 409, nil},
		"x-gzip, done":           {"x-gzip", gzipped(t, `{"code":"done"}`), 409, nil},
		"deflate, done":          {"deflate", deflated.String(), 409, nil},
		"raw deflate, done":      {"deflate", raw.String(), 409, nil},
		"identity, done":         {"identity", `{"code":"done"}`, 409, nil},
		"gzip, another":          {"gzip", gzipped(t, `{"code":"other"}`), 409, oncehttp.ErrKeyReused},
		"unreadable coding":      {"br", "\x0b\x02\x80", 409, oncehttp.ErrOutcomeUnknown},
		"broken gzip":            {"gzip", gzipped(t, `{"code":"done"}`)[:20], 409, oncehttp.ErrOutcomeUnknown},
		"no gzip at all":         {"gzip", `{"code":"done"}`, 409, oncehttp.ErrOutcomeUnknown},
		"a bomb":                 {"gzip", gzipped(t, strings.Repeat(" ", 3<<20)+`{"code":"done"}`), 409, oncehttp.ErrOutcomeUnknown},
		"unreadable, not needed": {"br", "\x0b\x02\x80", 201, nil},
	} {
		for _, doubt := range []bool{false, true} {
			test := test
			if !doubt && strings.HasSuffix(name, ", done") {
				test.want = oncehttp.ErrDuplicate // by another request
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: test.status, Header: "Content-Type: application/json\nContent-Encoding: " + test.coding, Body: test.body}}}
				if doubt {
					w.Replies = append([]wiretest.Reply{{Err: wiretest.ErrLost}}, w.Replies...)
				}
				synctest.Test(t, func(t *testing.T) {
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
					for i := range 2 { // from the server, then from the journal
						resp, err := c.DoKey(clienttest.Post(t, "{}"), "k-1")
						switch {
						case test.want != nil && i > 0:
							clienttest.ExactlyOne(t, err)
						case test.want != nil && !errors.Is(err, test.want), test.want == nil && err != nil:
							t.Errorf("%v, want %v", err, test.want)
						case test.want == nil && (clienttest.Read(t, resp) != test.body || resp.Header.Get("Content-Encoding") != test.coding):
							t.Errorf("call %d: it did not come as it was: %v", i, resp.Header)
						}
					}
				})
			})
		}
	}
}

// No answer that a journal keeps holds a credential, whoever gave it: the server, a person, Reconcile or a lookup.
func TestNeighbourAnswersKept(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	for name, value := range map[string]string{
		"Set-Cookie": "session=sekret", "X-Auth-Token": "sekret", "Location": "/p/1?api_key=sekret&page=1", "Content-Location": "https://u:sekret@api.example.com/p/1",
		"Link": `</p?cursor=2&access_token=sekret>; rel="next", </q?sig=sekret>; rel=last`, "Refresh": "5; url=/p/1?signature=sekret", "Operation-Location": "https://api.example.com/op?client_secret=sekret",
		"X-Next": "https://api.example.com/next?X-Amz-Signature=sekret#access_token=sekret", "Azure-AsyncOperation": "https://api.example.com/op?sig=sekret", "X-Api-Key": "sekret",
	} {
		header.Set(name, value)
	}
	var lines []string
	for name := range header {
		lines = append(lines, name+": "+header.Get(name))
	}
	answer := &persist.Answer{Status: 201, Header: header, Body: []byte("{}")}
	for _, way := range []string{"server", "held", "Settle", "Reconcile", "lookup"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(testrun.Dir(t), "j.db")
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: strings.Join(lines, "\n"), Body: "{}"}}}
			cfg := oncehttp.Config{Transport: w, Retry: oncehttp.Policy{MaxAttempts: 1}, Profile: onceShop()}
			switch way {
			case "held":
				w.Replies[0].Status = 302
			case "Settle":
				w.Replies[0] = wiretest.Reply{Err: wiretest.ErrLost}
			case "Reconcile":
				w.Replies[0] = wiretest.Reply{Status: 302, Header: "Location: https://other.example.com/"}
				cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
					return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: answer}, nil
				}
			case "lookup":
				w.Replies = []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Header: w.Replies[0].Header, Body: `{"data":[{"reference":"r"}]}`}}
				cfg.Retry = oncehttp.Policy{AskFirst: true, MaxAttempts: 2, MinDelay: time.Millisecond, MaxDelay: time.Millisecond}
			}
			c, err := oncehttp.Open(path, cfg)
			fatal(t, err)
			_, err = c.DoKey(clienttest.Post(t, `{"reference":"r"}`), "k-1")
			switch way {
			case "Settle":
				settleKey(t, c, "k-1", answer)
			case "Reconcile":
				fatal(t, onePass(t, c))
			case "server", "lookup":
				fatal(t, err)
			}
			rec := clienttest.Lookup(t, c, "k-1")
			if way != "held" && rec.State != persist.StateConfirmed && rec.State != persist.StateSettled || rec.Answer == nil {
				t.Errorf("it is %v, %+v", rec.State, rec.Answer)
			} else if way != "lookup" && way != "held" && !strings.Contains(rec.Answer.Header.Get("Location"), "page=1") {
				t.Errorf("Location %q", rec.Answer.Header.Get("Location"))
			}
			fatal(t, c.Close())
			if raw, err := os.ReadFile(path); err != nil || bytes.Contains(raw, []byte("sekret")) {
				i := max(0, bytes.Index(raw, []byte("sekret")))
				t.Errorf("the file holds a credential: %q, %v", raw[max(0, i-80):min(len(raw), i+10)], err)
			}
			if header.Get("X-Auth-Token") != "sekret" {
				t.Error("the caller's answer was changed")
			}
		})
	}
}

func settleKey(t *testing.T, c *oncehttp.Client, key oncehttp.Key, answer *persist.Answer) {
	t.Helper()
	fatal(t, c.Settle(t.Context(), key, oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: answer}))
}
