package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// bodies is a server that keeps the type and the bytes of each body.
type bodies struct {
	*counted
	mu  sync.Mutex
	got []string
}

func serveBodies(t *testing.T) *bodies {
	b := &bodies{}
	b.counted = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got = append(b.got, r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(http.StatusCreated)
	})
	return b
}

// Rows are spelled as the API of the profile takes them: https://docs.stripe.com/api says that it "accepts form-encoded
// request bodies", and stripe-go's package form writes metadata[order] and items[0][price].
func TestBatchFormByProfile(t *testing.T) {
	t.Parallel()
	const formOf, jsonOf = "application/x-www-form-urlencoded ", "application/json "
	csv := "amount,currency,metadata[order]\n100,eur,o1\n"
	ndjson := `{"amount":1.50,"metadata":{"order":"o1","a b":"c&d"},"items":[{"price":"p","n":2},"x"],"paid":true}` + "\n"
	template := `{"amount":{amount:number},"metadata":{"order":"{metadata[order]}"},"expand":["{currency}"]}`
	for name, c := range map[string]struct {
		file, text string
		args       []string
		want       string
	}{
		"columns":              {"in.csv", csv, []string{"--key", "o:{metadata[order]}"}, formOf + "amount=100&currency=eur&metadata%5Border%5D=o1"},
		"a template":           {"in.csv", csv, []string{"--key", "o:{metadata[order]}", "--body", template}, formOf + "amount=100&metadata%5Border%5D=o1&expand%5B0%5D=eur"},
		"NDJSON":               {"in.ndjson", ndjson, []string{"--key", "o:{/metadata/order}"}, formOf + "amount=1.50&metadata%5Border%5D=o1&metadata%5Ba+b%5D=c%26d&items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Bn%5D=2&items%5B1%5D=x&paid=true"},
		"NDJSON all the same":  {"in.ndjson", ndjson, []string{"--key", "o:{/metadata/order}", "--form=false"}, jsonOf + strings.TrimSpace(ndjson)},
		"columns all the same": {"in.csv", csv, []string{"--key", "o:{metadata[order]}", "--form=false"}, jsonOf + `{"amount":"100","currency":"eur","metadata[order]":"o1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveBodies(t)
			args := append([]string{"batch", writeFile(t, c.file, c.text), "--url", s.url, "--profile", "stripe"}, c.args...)
			for range 2 { // the second time the journal answers: the same row is the same bytes
				run(t, args...).want(t, exitOK)
			}
			if len(s.got) != 1 || s.got[0] != c.want {
				t.Errorf("got %q, want %q", s.got, c.want)
			}
		})
	}
}

// A key in a form's field is read and checked, and never put in: a row whose key is another is not sent.
func TestBatchKeyInForm(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "mine.json", `{"name": "mine", "version": "1", "sources": {"docs": {"ref": "seen", "date": "2026-11", "confidence": "primary"}},
		"carrier": {"value": {"place": "form", "name": "meta[key]"}, "source": "docs"}, "body": {"value": {"formats": ["form"]}, "source": "docs"}}`)
	s := serveBodies(t)
	in := writeFile(t, "in.csv", "id,meta[key]\n1,idemp:o:1\n")
	run(t, "batch", in, "--url", s.url, "--profile", file, "--key", "o:{id}").want(t, exitOK)
	if want := "application/x-www-form-urlencoded id=1&meta%5Bkey%5D=idemp%3Ao%3A1"; len(s.got) != 1 || s.got[0] != want {
		t.Errorf("got %q, want %q", s.got, want)
	}
	for text, want := range map[string]string{
		"id,meta[key]\n2,idemp:o:3\n":  `two keys in one request: "idemp:o:3" and "idemp:o:2"`,
		"id,meta[keys]\n2,idemp:o:2\n": `profile "mine" wants the key in the field meta[key] of a form; it is never inserted`,
	} {
		got := run(t, "batch", writeFile(t, "in.csv", text), "--url", s.url, "--profile", file, "--key", "o:{id}").want(t, exitUsage)
		if !strings.Contains(got.err, want) || s.sends.Load() != 1 {
			t.Errorf("%d sends, stderr %s; want %s", s.sends.Load(), got.err, want)
		}
	}
}

// send refuses JSON for an API that reads forms, unless the header says that it is meant.
func TestSendForm(t *testing.T) {
	t.Parallel()
	s := serveBodies(t)
	args := []string{"send", "POST", s.url, "--profile", "stripe", "--journal", journalIn(t), "--silent"}
	run(t, append(args, "-d", `{"amount":100}`)...).usage(t, "oncehttp: --data is JSON, and the API of --profile stripe reads forms: write -d 'amount=100' -d 'metadata[order]=o1', or say -H 'Content-Type: application/json'")
	run(t, append(args, "-d", "amount=100", "-d", "metadata[order]=o1")...).want(t, exitOK)
	run(t, append(args, "-d", `{"amount":100}`, "-H", "Content-Type: application/json")...).want(t, exitOK)
	if len(s.got) != 2 || s.got[0] != "application/x-www-form-urlencoded amount=100&metadata[order]=o1" || s.got[1] != `application/json {"amount":100}` {
		t.Errorf("got %q", s.got)
	}
}
