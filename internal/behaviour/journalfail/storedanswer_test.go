package journalfail_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// unstored is the configuration for an API that says that it keeps no success under a key.
func unstored(cfg *oncehttp.Config) {
	cfg.Profile = profile.Draft07()
	cfg.Profile.Name, cfg.Profile.Stored.Success = "ours", profile.No
}

// answersStored lists final answers, and whether the server gives each again for the same key.
func answersStored() map[string]struct {
	change func(*oncehttp.Config)
	method string
	reply  wiretest.Reply
	stored bool
} {
	const problem = "Content-Type: application/problem+json"
	return map[string]struct {
		change func(*oncehttp.Config)
		method string
		reply  wiretest.Reply
		stored bool
	}{
		"402":                       {nil, "POST", wiretest.Reply{Status: 402}, false},
		"402, stored":               {clienttest.StoresErrors, "POST", wiretest.Reply{Status: 402, Header: problem}, true},
		"418, replayed":             {nil, "POST", wiretest.Reply{Status: 418, Header: "Idempotent-Replayed: true"}, true},
		"413 of any layer":          {nil, "POST", wiretest.Reply{Status: 413, Header: "Idempotent-Replayed: true"}, false},
		"201":                       {nil, "POST", wiretest.Reply{Status: 201}, true},
		"201 that is not stored":    {unstored, "POST", wiretest.Reply{Status: 201}, false},
		"201 without a key":         {clienttest.TakesNoKey, "POST", wiretest.Reply{Status: 201}, false},
		"201 on an unlisted method": {clienttest.Protected, "PUT", wiretest.Reply{Status: 201}, false},
	}
}

// TestALargeAnswerIsAskedForAgainOnlyWhereItIsStored: asked for any other, the server would act again, or answer otherwise. A
// refusal is never asked for again, by anybody.
func TestALargeAnswerIsAskedForAgainOnlyWhereItIsStored(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 500)
	for name, r := range answersStored() {
		for what, change := range map[string]func(*wiretest.Reply){
			"body":   func(r *wiretest.Reply) { r.Body = large },
			"header": func(r *wiretest.Reply) { r.Body, r.Header = "small", r.Header+"\nX-Large: "+large },
		} {
			t.Run(name+" by its "+what, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					first := r.reply
					change(&first)
					w := &wiretest.Wire{Replies: []wiretest.Reply{first, first}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.MaxResponseBytes, cfg.MaxResponseHeaderBytes = 100, 300
						if r.change != nil {
							r.change(cfg)
						}
					})
					do := func() (int, error) {
						resp, err := c.DoKey(clienttest.Request(t, r.method, "https://api.example.com/p", "{}"), "k")
						if err != nil {
							return 0, err
						}
						if got := clienttest.Read(t, resp); got != first.Body {
							t.Errorf("the body is %.20q", got)
						}
						return resp.StatusCode, nil
					}
					if status, err := do(); err != nil || status != first.Status {
						t.Fatalf("%d, %v", status, err)
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.Answer.Stored != r.stored || !rec.Answer.BodyDropped {
						t.Errorf("recorded as stored %t, dropped %t", rec.Answer.Stored, rec.Answer.BodyDropped)
					}
					status, err := do()
					var e *oncehttp.Error
					asked := r.stored && r.reply.Status < 400 // never for a refusal
					if asked && (err != nil || status != first.Status || w.Count() != 2) {
						t.Errorf("again: %d, %v after %d sends, want the same after two", status, err, w.Count())
					}
					if !asked && (!errors.Is(err, oncehttp.ErrAnswerGone) || !errors.Is(err, oncehttp.ErrFinal) || !errors.As(err, &e) || e.Answer == nil || e.Answer.Status != first.Status || w.Count() != 1) {
						t.Errorf("again: %v after %d sends, want ErrAnswerGone after one", err, w.Count())
					}
				})
			})
		}
	}
}

// TestTwoReadersOfALargeRefusal are told the same: one reads it, the other learns that it is gone, and neither of another.
func TestTwoReadersOfALargeRefusal(t *testing.T) {
	t.Parallel()
	for _, status := range []int{402, 404} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Body: strings.Repeat("x", 500), Delay: 1}, {Status: 201, Body: "paid"}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 100 })
			said := make(chan string, 2)
			for range 2 {
				go func() {
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					switch {
					case err == nil:
						said <- fmt.Sprint(resp.StatusCode, " ", len(clienttest.Read(t, resp)))
					case errors.Is(err, oncehttp.ErrAnswerGone):
						said <- "gone"
					default:
						said <- err.Error()
					}
				}()
			}
			got := map[string]bool{<-said: true, <-said: true}
			if !got["gone"] || !got[fmt.Sprint(status, " 500")] || w.Count() != 1 {
				t.Errorf("%v after %d sends", got, w.Count())
			}
		})
	}
}

// TestAnotherAnswerThanTheRecordedOne does not take its place: a server that answers a repeat otherwise did not store it.
func TestAnotherAnswerThanTheRecordedOne(t *testing.T) {
	t.Parallel()
	const problem = "Content-Type: application/problem+json"
	for _, r := range []struct {
		first, second wiretest.Reply
		same          bool
	}{
		{wiretest.Reply{Status: 402, Header: problem}, wiretest.Reply{Status: 201}, false}, {wiretest.Reply{Status: 402, Header: problem}, wiretest.Reply{Status: 404, Header: problem}, false},
		{wiretest.Reply{Status: 402, Header: problem}, wiretest.Reply{Status: 402, Header: problem}, false}, {wiretest.Reply{Status: 201}, wiretest.Reply{Status: 200}, true},
		{wiretest.Reply{Status: 201}, wiretest.Reply{Status: 402, Header: problem}, false}, {wiretest.Reply{Status: 201}, wiretest.Reply{Status: 404, Empty: true}, false},
		{wiretest.Reply{Status: 201}, wiretest.Reply{Status: 200, Body: wiretest.Maintenance}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r.first.Body = strings.Repeat("x", 500)
			w := &wiretest.Wire{Replies: []wiretest.Reply{r.first, r.second}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				cfg.MaxResponseBytes = 400
				clienttest.StoresErrors(cfg)
			})
			resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			resp, err = c.DoKey(clienttest.Post(t, "{}"), "k")
			if r.same != (err == nil) || err == nil && resp.StatusCode != r.second.Status || err != nil && !errors.Is(err, oncehttp.ErrAnswerGone) {
				t.Errorf("%d, then %d: %v", r.first.Status, r.second.Status, err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed || rec.Answer.Status != r.first.Status {
				t.Errorf("%d, then %d: the record says %d", r.first.Status, r.second.Status, rec.Answer.Status)
			}
		})
	}
}

// TestTheAnswerAskedForAgainEndsTheCall: the operation is decided, so that a server's advice to try again counts no longer.
func TestTheAnswerAskedForAgainEndsTheCall(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 500)
	refusal := wiretest.Reply{Status: 402, Header: "Stripe-Should-Retry: true\nIdempotent-Replayed: true", Body: large}
	other := wiretest.Reply{Status: 425, Header: "Stripe-Should-Retry: true", Body: large}
	success := wiretest.Reply{Status: 201, Body: large}
	for _, r := range []struct {
		first  wiretest.Reply
		again  []wiretest.Reply
		status int // 0: the answer is gone
		sends  int // of the second call
	}{
		{refusal, []wiretest.Reply{refusal, {Status: 503}}, 0, 0},
		{refusal, []wiretest.Reply{refusal, {Err: wiretest.ErrLost}}, 0, 0}, // a refusal is not asked for
		{refusal, []wiretest.Reply{{Status: 503}, refusal, {Status: 503}}, 0, 0},
		{success, []wiretest.Reply{{Status: 503}, success, {Status: 503}}, 201, 2},
		{refusal, []wiretest.Reply{success}, 0, 0},
		{success, []wiretest.Reply{refusal, success}, 0, 1},
		{success, []wiretest.Reply{other, success}, 201, 2}, // which says nothing of the operation
		{success, []wiretest.Reply{{Status: 503}}, 0, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			j, w := memory.New(), &wiretest.Wire{Replies: append([]wiretest.Reply{r.first}, r.again...)}
			do := func(attempts int) (int, error) {
				c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Profile, cfg.MaxResponseBytes, cfg.Retry.MaxAttempts = profile.StripeV1(), 300, attempts
					cfg.Profile.Body = profile.BodyRule{} // the test sends JSON
				}))
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil {
					return 0, err
				}
				clienttest.Read(t, resp)
				return resp.StatusCode, nil
			}
			if status, err := do(1); err != nil || status != r.first.Status {
				t.Fatal(status, err)
			}
			status, err := do(4)
			if status != r.status || (err == nil) != (r.status > 0) || err != nil && !errors.Is(err, oncehttp.ErrAnswerGone) || w.Count() != 1+r.sends {
				t.Errorf("%d, then %d: %d, %v after %d sends, want %d after %d", r.first.Status, r.again[0].Status, status, err, w.Count()-1, r.status, r.sends)
			}
		})
	}
}

// TestTheJournalReplaysWhateverIsStored: a recorded answer is given again without a send, whether the server would or not. One
// that the server does not give again is durable before anybody has it.
func TestTheJournalReplaysWhateverIsStored(t *testing.T) {
	t.Parallel()
	for name, r := range answersStored() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newLazy()
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply, {Status: 500}}}
				changes := []func(*oncehttp.Config){}
				if r.change != nil {
					changes = append(changes, r.change)
				}
				c, _ := clienttest.New(t, w, clienttest.On(j, changes...))
				for range 2 {
					resp, err := c.DoKey(clienttest.Request(t, r.method, "https://api.example.com/p", "{}"), "k")
					if err != nil || resp.StatusCode != r.reply.Status || w.Count() != 1 {
						t.Fatalf("%v after %d sends", err, w.Count())
					}
				}
				j.mu.Lock()
				lost := len(j.before)
				j.mu.Unlock()
				if (lost > 0) != r.stored {
					t.Errorf("%d finishes would be lost; stored %t", lost, r.stored)
				}
			})
		})
	}
}
