package oncehttp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
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
	reply  reply
	stored bool
} {
	const problem = "Content-Type: application/problem+json"
	return map[string]struct {
		change func(*oncehttp.Config)
		method string
		reply  reply
		stored bool
	}{
		"402":                       {nil, "POST", reply{status: 402}, false},
		"402, stored":               {nil, "POST", reply{status: 402, header: problem}, true},
		"418, replayed":             {nil, "POST", reply{status: 418, header: "Idempotent-Replayed: true"}, true},
		"413 of any layer":          {nil, "POST", reply{status: 413, header: "Idempotent-Replayed: true"}, false},
		"201":                       {nil, "POST", reply{status: 201}, true},
		"201 that is not stored":    {unstored, "POST", reply{status: 201}, false},
		"201 without a key":         {keyless, "POST", reply{status: 201}, false},
		"201 on an unlisted method": {protected, "PUT", reply{status: 201}, false},
	}
}

// TestALargeAnswerIsAskedForAgainOnlyWhereItIsStored: asked for any other, the server would act again, or answer otherwise. A
// refusal is never asked for again, by anybody.
func TestALargeAnswerIsAskedForAgainOnlyWhereItIsStored(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 500)
	for name, r := range answersStored() {
		for what, change := range map[string]func(*reply){
			"body":   func(r *reply) { r.body = large },
			"header": func(r *reply) { r.body, r.header = "small", r.header+"\nX-Large: "+large },
		} {
			t.Run(name+" by its "+what, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					first := r.reply
					change(&first)
					w := &wire{replies: []reply{first, first}}
					c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
						cfg.MaxResponseBytes, cfg.MaxResponseHeaderBytes = 100, 300
						if r.change != nil {
							r.change(cfg)
						}
					})
					do := func() (int, error) {
						resp, err := c.DoKey(request(t, r.method, "https://api.example.com/p", "{}"), "k")
						if err != nil {
							return 0, err
						}
						if got := read(t, resp); got != first.body {
							t.Errorf("the body is %.20q", got)
						}
						return resp.StatusCode, nil
					}
					if status, err := do(); err != nil || status != first.status {
						t.Fatalf("%d, %v", status, err)
					}
					if rec := lookup(t, c, "k"); rec.Answer.Stored != r.stored || !rec.Answer.BodyDropped {
						t.Errorf("recorded as stored %t, dropped %t", rec.Answer.Stored, rec.Answer.BodyDropped)
					}
					status, err := do()
					var e *oncehttp.Error
					asked := r.stored && r.reply.status < 400 // never for a refusal
					if asked && (err != nil || status != first.status || w.count() != 2) {
						t.Errorf("again: %d, %v after %d sends, want the same after two", status, err, w.count())
					}
					if !asked && (!errors.Is(err, oncehttp.ErrAnswerGone) || !errors.Is(err, oncehttp.ErrFinal) || !errors.As(err, &e) || e.Answer == nil || e.Answer.Status != first.status || w.count() != 1) {
						t.Errorf("again: %v after %d sends, want ErrAnswerGone after one", err, w.count())
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
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: status, body: strings.Repeat("x", 500), delay: 1}, {status: 201, body: "paid"}}}
			c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 100 })
			said := make(chan string, 2)
			for range 2 {
				go func() {
					resp, err := c.DoKey(post(t, "{}"), "k")
					switch {
					case err == nil:
						said <- fmt.Sprint(resp.StatusCode, " ", len(read(t, resp)))
					case errors.Is(err, oncehttp.ErrAnswerGone):
						said <- "gone"
					default:
						said <- err.Error()
					}
				}()
			}
			got := map[string]bool{<-said: true, <-said: true}
			if !got["gone"] || !got[fmt.Sprint(status, " 500")] || w.count() != 1 {
				t.Errorf("%v after %d sends", got, w.count())
			}
		})
	}
}

// TestAnotherAnswerThanTheRecordedOne does not take its place: a server that answers a repeat otherwise did not store it.
func TestAnotherAnswerThanTheRecordedOne(t *testing.T) {
	t.Parallel()
	const problem = "Content-Type: application/problem+json"
	for _, r := range []struct {
		first, second reply
		same          bool
	}{
		{reply{status: 402, header: problem}, reply{status: 201}, false}, {reply{status: 402, header: problem}, reply{status: 404, header: problem}, false},
		{reply{status: 402, header: problem}, reply{status: 402, header: problem}, false}, {reply{status: 201}, reply{status: 200}, true},
		{reply{status: 201}, reply{status: 402, header: problem}, false}, {reply{status: 201}, reply{status: 404, empty: true}, false},
		{reply{status: 201}, reply{status: 200, body: maintenance}, false},
	} {
		bubble(t, func(t *testing.T) {
			r.first.body = strings.Repeat("x", 500)
			w := &wire{replies: []reply{r.first, r.second}}
			c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 400 })
			resp, err := c.DoKey(post(t, "{}"), "k")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			resp, err = c.DoKey(post(t, "{}"), "k")
			if r.same != (err == nil) || err == nil && resp.StatusCode != r.second.status || err != nil && !errors.Is(err, oncehttp.ErrAnswerGone) {
				t.Errorf("%d, then %d: %v", r.first.status, r.second.status, err)
			}
			if rec := lookup(t, c, "k"); rec.State != persist.StateConfirmed || rec.Answer.Status != r.first.status {
				t.Errorf("%d, then %d: the record says %d", r.first.status, r.second.status, rec.Answer.Status)
			}
		})
	}
}

// TestTheAnswerAskedForAgainEndsTheCall: the operation is decided, so that a server's advice to try again counts no longer.
func TestTheAnswerAskedForAgainEndsTheCall(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 500)
	refusal := reply{status: 402, header: "Stripe-Should-Retry: true\nIdempotent-Replayed: true", body: large}
	other := reply{status: 425, header: "Stripe-Should-Retry: true", body: large}
	success := reply{status: 201, body: large}
	for _, r := range []struct {
		first  reply
		again  []reply
		status int // 0: the answer is gone
		sends  int // of the second call
	}{
		{refusal, []reply{refusal, {status: 503}}, 0, 0},
		{refusal, []reply{refusal, {err: errLost}}, 0, 0}, // a refusal is not asked for
		{refusal, []reply{{status: 503}, refusal, {status: 503}}, 0, 0},
		{success, []reply{{status: 503}, success, {status: 503}}, 201, 2},
		{refusal, []reply{success}, 0, 0},
		{success, []reply{refusal, success}, 0, 1},
		{success, []reply{other, success}, 201, 2}, // which says nothing of the operation
		{success, []reply{{status: 503}}, 0, 4},
	} {
		bubble(t, func(t *testing.T) {
			j, w := memory.New(), &wire{replies: append([]reply{r.first}, r.again...)}
			do := func(attempts int) (int, error) {
				c, _ := newClient(t, w, on(j, func(cfg *oncehttp.Config) {
					cfg.Profile, cfg.MaxResponseBytes, cfg.Retry.MaxAttempts = profile.StripeV1(), 300, attempts
					cfg.Profile.Body = profile.BodyRule{} // the test sends JSON
				}))
				resp, err := c.DoKey(post(t, "{}"), "k")
				if err != nil {
					return 0, err
				}
				read(t, resp)
				return resp.StatusCode, nil
			}
			if status, err := do(1); err != nil || status != r.first.status {
				t.Fatal(status, err)
			}
			status, err := do(4)
			if status != r.status || (err == nil) != (r.status > 0) || err != nil && !errors.Is(err, oncehttp.ErrAnswerGone) || w.count() != 1+r.sends {
				t.Errorf("%d, then %d: %d, %v after %d sends, want %d after %d", r.first.status, r.again[0].status, status, err, w.count()-1, r.status, r.sends)
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
			bubble(t, func(t *testing.T) {
				j := newLazy()
				w := &wire{replies: []reply{r.reply, {status: 500}}}
				changes := []func(*oncehttp.Config){}
				if r.change != nil {
					changes = append(changes, r.change)
				}
				c, _ := newClient(t, w, on(j, changes...))
				for range 2 {
					resp, err := c.DoKey(request(t, r.method, "https://api.example.com/p", "{}"), "k")
					if err != nil || resp.StatusCode != r.reply.status || w.count() != 1 {
						t.Fatalf("%v after %d sends", err, w.count())
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
