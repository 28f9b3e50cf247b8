package redrive_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// charge returns a charge's request.
func charge(t *testing.T) *http.Request {
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req
}

// TestTakenBackStopsTheNext: a caller was told that k is absent, and a person takes that back. The next generation, which the caller may begin now, is not sent
// until a person says once more that k is absent.
func TestTakenBackStopsTheNext(t *testing.T) {
	t.Parallel()
	for _, settled := range []persist.Effect{"", persist.EffectHappened, persist.EffectAbsent} {
		for name, begin := range map[string]func(f *family) error{
			"Do":      func(f *family) error { return f.do(f.Client, "k:gen=2") },
			"Enqueue": func(f *family) error { f.enqueue("k:gen=2"); return nil },
		} {
			t.Run(name+" "+string(settled), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFamily(t, nil, lostReply, paid)
					_ = f.do(f.Client, "k")
					time.Sleep(time.Hour)
					f.absent("k")
					if err := f.do(f.Client, "k"); !errors.Is(err, oncehttp.ErrNoEffect) {
						t.Fatal(err)
					}
					rec, err := f.Prepare(charge(t), "k:gen=2")
					clienttest.Must(t, err)
					for range 2 { // also after a crash
						if was, err := f.Unsettle(t.Context(), "k", "it is in the export"); err != nil || !was.Told {
							t.Errorf("Unsettle: told %t, %v", was.Told, err)
						}
					}
					if settled != "" {
						clienttest.Must(t, f.Settle(t.Context(), "k", oncehttp.Resolution{Effect: settled}, oncehttp.AsSeen(clienttest.Lookup(t, f.Client, "k"))))
					}
					if settled == persist.EffectAbsent {
						clienttest.Must(t, begin(f))
						f.sends(2)
						return
					}
					if name == "Do" {
						f.refused(begin(f))
					} else {
						f.refused(f.Enqueue(charge(t), "k:gen=2"))
					}
					_, _, err = f.journal.Begin(t.Context(), rec) // as a transaction does
					clienttest.Must(t, err)
					clienttest.Resume(t, f.Client)
					f.sends(1)
					if rec := clienttest.Lookup(t, f.Client, "k:gen=2"); rec.HoldReason != persist.HoldPredecessor {
						t.Errorf("k:gen=2 is %v %s", rec.State, rec.HoldReason)
					}
				})
			})
		}
	}
}

// TestRedrivenStopsLater: a person redrives k, whose generation 2 was provably not sent and is forgotten. The program, which counts its tries, begins generation 3:
// it is not sent while the redriven generation 2 may take effect, or once it has.
func TestRedrivenStopsLater(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFamily(t, nil, cardError, wiretest.Reply{Refused: true}, paid, paid)
			clienttest.Must(t, f.do(f.Client, "k"))
			if err := f.do(f.Client, "k:gen=2"); !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Fatal(err)
			}
			f.redriven("k")
			if ended {
				clienttest.Resume(t, f.Client)
			}
			f.refused(f.do(f.Client, "k:gen=3"))
			clienttest.Resume(t, f.Client)
			if n := f.wire.Keys()["k:gen=3"]; n != 0 {
				t.Errorf("generation 3 was sent %d times", n)
			}
		})
	}
}

// TestAssignedBesideItsNext: an Assign leaves the next generation behind, under no account. Neither a Rekey nor a Redrive begins the assigned one once more beside it.
func TestAssignedBesideItsNext(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Rekey", "Redrive"} {
		f := newFamily(t, nil, lostReply, paid)
		f.enqueue("k")
		f.absent("k")
		if err := f.do(f.Client, "k"); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Fatal(err)
		}
		next := oncehttp.Key("k:gen=2")
		if how == "Redrive" {
			next = "k:gen=3"
		}
		clienttest.Must(t, f.do(f.Client, next))
		ctx := oncehttp.ContextWithAccount(t.Context(), "acct")
		clienttest.Must(t, f.Assign(ctx, "k"))
		rec, err := f.Lookup(ctx, "k")
		clienttest.Must(t, err)
		if how == "Rekey" {
			err = f.Rekey(ctx, "k", "x", "once more", oncehttp.AsSeen(rec))
		} else {
			_, err = f.Redrive(ctx, "k")
		}
		f.refused(err)
		clienttest.Resume(t, f.Client)
		f.sends(2)
	}
}

// TestTakenBackAndErased: a person took back that k is absent, gave it up, and had it erased once its times were over. Its record tells nothing of these acts any more, and no
// next generation begins: k may have taken effect. (Invariants 1, 54 and 57.)
func TestTakenBackAndErased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, nil, lostReply, paid)
		_ = f.do(f.Client, "k")
		time.Sleep(time.Hour)
		f.absent("k")
		if err := f.do(f.Client, "k"); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Fatal(err)
		}
		_, err := f.Unsettle(t.Context(), "k", "it is in the export")
		clienttest.Must(t, err)
		clienttest.Must(t, f.Abandon(t.Context(), "k"))
		f.refused(f.do(f.Client, "k:gen=2"))
		time.Sleep(400 * 24 * time.Hour)
		clienttest.Must(t, f.Erase(t.Context(), "k"))
		f.refused(f.do(f.Client, "k:gen=2"))
		f.sends(1)
	})
}
