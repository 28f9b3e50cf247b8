package input_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// bodies is a server that keeps the type and the bytes of each body.
type bodies struct {
	*commandtest.Counted
	mu  sync.Mutex
	got []string
}

func serveBodies(t *testing.T) *bodies {
	b := &bodies{}
	b.Counted = commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
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
			args := append([]string{"batch", commandtest.WriteFile(t, c.file, c.text), "--url", s.URL, "--profile", "stripe"}, c.args...)
			for range 2 { // the second time the journal answers: the same row is the same bytes
				commandtest.Run(t, args...).Want(t, terminal.ExitOK)
			}
			if len(s.got) != 1 || s.got[0] != c.want {
				t.Errorf("got %q, want %q", s.got, c.want)
			}
		})
	}
}

// A key in a form's field is read and checked, and put in where --insert-key says so: a row whose key is another is not sent.
func TestBatchKeyInForm(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "mine.json", `{"name": "mine", "version": "1", "sources": {"docs": {"ref": "seen", "date": "2026-11", "confidence": "primary"}},
		"carrier": {"value": {"place": "form", "name": "meta[key]"}, "source": "docs"}, "body": {"value": {"formats": ["form"]}, "source": "docs"}}`)
	s := serveBodies(t)
	in := commandtest.WriteFile(t, "in.csv", "id,meta[key]\n1,idemp:o:1\n")
	commandtest.Run(t, "batch", in, "--url", s.URL, "--profile", file, "--key", "o:{id}").Want(t, terminal.ExitOK)
	if want := "application/x-www-form-urlencoded id=1&meta%5Bkey%5D=idemp%3Ao%3A1"; len(s.got) != 1 || s.got[0] != want {
		t.Errorf("got %q, want %q", s.got, want)
	}
	inserted := commandtest.WriteFile(t, "inserted.csv", "id\n9\n")
	commandtest.Run(t, "batch", inserted, "--url", s.URL, "--profile", file, "--key", "o:{id}", "--insert-key").Want(t, terminal.ExitOK)
	if want := "application/x-www-form-urlencoded id=9&meta%5Bkey%5D=idemp%3Ao%3A9"; len(s.got) != 2 || s.got[1] != want {
		t.Errorf("got %q, want %q", s.got, want)
	}
	for text, want := range map[string]string{
		"id,meta[key]\n2,idemp:o:3\n":  `two keys in one request: "idemp:o:3" and "idemp:o:2"`,
		"id,meta[keys]\n2,idemp:o:2\n": `profile "mine" wants the key in the field meta[key] of a form: put it there, or say --insert-key`,
	} {
		got := commandtest.Run(t, "batch", commandtest.WriteFile(t, "in.csv", text), "--url", s.URL, "--profile", file, "--key", "o:{id}").Want(t, terminal.ExitUsage)
		if !strings.Contains(got.Err, want) || s.Sends.Load() != 2 {
			t.Errorf("%d sends, stderr %s; want %s", s.Sends.Load(), got.Err, want)
		}
	}
}

// send refuses JSON for an API that reads forms, unless the header says that it is meant.
func TestSendForm(t *testing.T) {
	t.Parallel()
	s := serveBodies(t)
	args := []string{"send", "POST", s.URL, "--profile", "stripe", "--journal", commandtest.JournalIn(t), "--silent"}
	commandtest.Run(t, append(args, "-d", `{"amount":100}`)...).Usage(t, "oncehttp: --data is JSON, and the API of --profile stripe reads forms: write -d 'amount=100' -d 'metadata[order]=o1', or say -H 'Content-Type: application/json'")
	commandtest.Run(t, append(args, "-d", "amount=100", "-d", "metadata[order]=o1")...).Want(t, terminal.ExitOK)
	commandtest.Run(t, append(args, "-d", `{"amount":100}`, "-H", "Content-Type: application/json")...).Want(t, terminal.ExitOK)
	if len(s.got) != 2 || s.got[0] != "application/x-www-form-urlencoded amount=100&metadata[order]=o1" || s.got[1] != `application/json {"amount":100}` {
		t.Errorf("got %q", s.got)
	}
}
