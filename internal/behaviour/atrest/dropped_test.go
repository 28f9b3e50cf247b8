package atrest_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// quiet is a client of the journal for a server that answers with these replies, one after the other.
func quiet(t *testing.T, j persist.Journal, keep oncehttp.RequestKeeping, replies ...wiretest.Reply) *oncehttp.Client {
	t.Helper()
	c, err := oncehttp.New(oncehttp.Config{
		Journal: j, Origins: []string{"http://api.example"}, Retry: oncehttp.Policy{MaxAttempts: 1}, KeepFields: []string{"/kept"}, KeepRequest: keep,
		Transport: &wiretest.Wire{Replies: replies},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// card is a request with a canary in its body. large: its body is longer than a journal's rows and pages keep inside.
func card(t *testing.T, large bool) *http.Request {
	t.Helper()
	more := ""
	if large {
		more = strings.Repeat("card-canary ", 20_000)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example/pay", strings.NewReader(`{"kept":"kept-canary","card":"card-canary","more":"`+more+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// end ends one operation, and returns its error.
func end(t *testing.T, c *oncehttp.Client, large bool, key oncehttp.Key) error {
	t.Helper()
	resp, err := c.DoKey(card(t, large), key)
	if err == nil {
		_ = resp.Body.Close()
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return err
}

// TestBodyDroppedAtRest: after a success no byte of the body is in a table, or in a file that was compacted; after a refusal or a lost answer it
// is, unless Config.KeepRequest says otherwise. What is kept by choice is there, and the answer is replayed.
func TestBodyDroppedAtRest(t *testing.T) {
	t.Parallel()
	created, refused, lost := wiretest.Reply{Status: 201, Body: "answer-canary"}, wiretest.Reply{Status: 402}, wiretest.Reply{Err: wiretest.ErrLost}
	for name, r := range map[string]struct {
		keep  oncehttp.RequestKeeping
		reply wiretest.Reply
		stays bool
	}{
		"a success":                  {0, created, false},
		"a refusal":                  {0, refused, true},
		"a lost answer":              {0, lost, true},
		"a success, kept":            {oncehttp.KeepRequestWithAnswer, created, true},
		"a refusal, not kept":        {oncehttp.DropRequestAfterEnd, refused, false},
		"a lost answer, not kept":    {oncehttp.DropRequestAfterEnd, lost, true},
		"a success, not kept at all": {oncehttp.DropRequestAfterEnd, created, false},
	} {
		for size, large := range map[string]bool{"small": false, "large": true} {
			t.Run(name+"/"+size, func(t *testing.T) {
				t.Parallel()
				onTables(t, func(t *testing.T, at string) {
					j := open(t, at, false)
					c := quiet(t, j, r.keep, r.reply)
					err := end(t, c, large, "k")
					if r.reply.Status == 201 {
						if err := end(t, c, large, "k"); err != nil { // its recorded answer
							t.Error(err)
						}
					} else if err == nil && r.reply.Status == 0 {
						t.Error("no answer was lost")
					}
					if err := errors.Join(c.Close(), j.Close()); err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(at, "://") {
						commandtest.Run(t, "journal", "compact", "--journal", at).Want(t, terminal.ExitOK)
					}
					bytesOf := raw(t, at)
					if found := bytes.Contains(bytesOf, []byte("card-canary")); found != r.stays {
						t.Errorf("the body is found: %t, want %t", found, r.stays)
					}
					if !bytes.Contains(bytesOf, []byte("kept-canary")) {
						t.Error("the kept field is gone")
					}
				})
			})
		}
	}
}

// TestAnswerDroppedAtRest: no byte of a member that DropAnswer names is in a file or a table, in the answer of a success, a refusal or a held
// operation; the rest of the answer is, and a replay gives it. Without DropAnswer it is there, so that the search finds it.
func TestAnswerDroppedAtRest(t *testing.T) {
	t.Parallel()
	const body = `{"id":"answer-canary","client_secret":"secret-canary"}`
	for name, reply := range map[string]wiretest.Reply{
		"a success": {Status: 201, Body: body}, "a refusal": {Status: 402, Body: body}, "held": {Status: 500, Header: "Idempotent-Replayed: true", Body: body},
	} {
		for how, pointers := range map[string][]string{"dropped": {"/client_secret"}, "kept": nil} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				onTables(t, func(t *testing.T, at string) {
					j := open(t, at, false)
					c, err := oncehttp.New(oncehttp.Config{
						Journal: j, Origins: []string{"http://api.example"}, Retry: oncehttp.Policy{MaxAttempts: 1}, Profile: profile.StripeV1(),
						DropAnswer: pointers, Transport: &wiretest.Wire{Replies: []wiretest.Reply{reply}}, KeyHonoured: []string{"POST /pay"},
					})
					if err != nil {
						t.Fatal(err)
					}
					_ = end(t, c, false, "k")
					if err := errors.Join(c.Close(), j.Close()); err != nil {
						t.Fatal(err)
					}
					bytesOf := raw(t, at)
					if !bytes.Contains(bytesOf, []byte("answer-canary")) || bytes.Contains(bytesOf, []byte("secret-canary")) == (pointers != nil) {
						t.Errorf("the answer is there: %t; the member: %t", bytes.Contains(bytesOf, []byte("answer-canary")), bytes.Contains(bytesOf, []byte("secret-canary")))
					}
				})
			})
		}
	}
}

// TestErasedAtRest: after Erase no byte of the request, of the answer or of a person's words is in a table, and none is in a file that was compacted. In a
// file that was not, they may be. Neither the key, nor the account, nor the key of a successor is there as text; origin and effect are. It holds for a sealed journal, too: there
// account and keys were in clear, and the rest was not.
func TestErasedAtRest(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]bool{"clear": false, "sealed": true} {
		for size, large := range map[string]bool{"small": false, "large": true} {
			t.Run(name+"/"+size, func(t *testing.T) {
				t.Parallel()
				onTables(t, func(t *testing.T, at string) {
					a, j := newAPI(t), open(t, at, sealed)
					c := client(t, j, a)
					body := whole
					if large {
						body = `{"kept":"kept-canary","card":"` + strings.Repeat("body-canary ", 20_000) + `"}`
					}
					resp, err := c.DoKey(payment(t, a, body), "key-canary")
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					if err := c.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					before := raw(t, at)
					ageAndErase(t, j, "key-canary")
					rec, err := c.Lookup(t.Context(), "key-canary")
					if err != nil || !rec.Erased || rec.FinalEffect() != persist.EffectHappened {
						t.Fatalf("%+v, %v", rec, err)
					}
					if err := errors.Join(c.Close(), j.Close()); err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(at, "://") && !sealed { // with the key of a seal the copy is sealed anew: its own test
						commandtest.Run(t, "journal", "compact", "--journal", at).Want(t, terminal.ExitOK)
					}
					bytesOf := raw(t, at)
					if bytes.Contains(bytesOf, []byte("link-canary")) && (!sealed || strings.Contains(at, "://")) {
						t.Error("the key of a successor is found after Erase")
					}
					for canary, form := range forms {
						stays := canary == "http://127.0.0.1:"
						had := bytes.Contains(before, []byte(canary))
						if named := canary == "key-canary" || canary == "account-canary"; named && sealed && !strings.Contains(at, "://") {
							continue // in free pages of the file
						}
						if !sealed && canary != "note-canary" && had != form.clear {
							t.Errorf("%q was found before: %t", canary, had)
						}
						if found := bytes.Contains(bytesOf, []byte(canary)); found && !stays || !found && stays && had {
							t.Errorf("%q is found after Erase: %t, want %t", canary, found, stays)
						}
					}
				})
			})
		}
	}
}

// ageAndErase erases a record as an Erase after its window does.
func ageAndErase(t *testing.T, j persist.Journal, key string) {
	t.Helper()
	rec, err := j.Get(t.Context(), persist.ID{Account: persist.Account("account-canary"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	eraser, can := persist.As[persist.Eraser](j)
	if !can {
		t.Fatalf("a %T cannot erase", j)
	}
	rec.ReplacedBy = "link-canary"
	if rec, err = j.Amend(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	was := rec.Fingerprint
	secret, err := j.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec.Erase(secret)
	if _, err := eraser.Erase(t.Context(), rec, was); err != nil {
		t.Fatal(err)
	}
}
