package unauthorized

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestRevokedBacklog: with a revoked token only the operations under way are sent, and one in each pause. All wait, and take effect once the source has a
// token of the API's.
func TestRevokedBacklog(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, revokedBacklog)
	t.Run("claims", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { revokedBacklog(t, journaltest.NewFairLeasing(memory.New())) })
	})
}

func revokedBacklog(t *testing.T, j persist.Journal) {
	const workers, waiting = 2, 12
	source, server := &source{token: "old"}, &api{token: "new"}
	var log clienttest.Log
	c, _ := clienttest.New(t, server, clienttest.Together(clienttest.On(j), func(cfg *oncehttp.Config) {
		cfg.Logger = log.Warner()
		cfg.Authorize, cfg.ResumeWorkers, cfg.OriginWorkers, cfg.EnqueueMaxAge = source.authorize, workers, workers, 240*time.Hour
	}))
	clienttest.Enqueue(t, c, waiting)
	stop := clienttest.Run(t, c)
	time.Sleep(time.Hour)
	tries := 11 + 4 // after 0.5 s, 1 s, 2 s up to 15 minutes, and then in each 15 minutes
	_, refused, _ := server.count()
	if most := 2*workers + tries; refused > most || refused < 11 {
		t.Errorf("%d operations were refused in an hour; want %d at most, and a try in each quarter of an hour", refused, most)
	}
	source.set("new")
	time.Sleep(15*time.Minute + time.Second)
	if effects, again, _ := server.count(); again != refused || effects != waiting {
		t.Errorf("with a new token %d took effect and %d were refused, want %d and none", effects, again-refused, waiting)
	}
	clienttest.Must(t, stop())
	if log.Lines() > refused {
		t.Errorf("%d warnings, want one for each refused send, %d, at most", log.Lines(), refused)
	}
}

// TestRevokedAlone: other credentials for the same origin go on beside the refused ones.
func TestRevokedAlone(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		server := &api{token: "good"}
		c, _ := clienttest.New(t, server, clienttest.Together(clienttest.On(j), func(cfg *oncehttp.Config) {
			cfg.Authorize = func(req *http.Request) error {
				token := "good"
				if wiretest.Key(req.Header)[1]%2 == 1 { // k1, k3, k5 …
					token = "revoked"
				}
				req.Header.Set("Authorization", "Bearer "+token)
				return nil
			}
		}))
		clienttest.Enqueue(t, c, 10)
		stop := clienttest.Run(t, c)
		time.Sleep(30 * time.Second)
		if effects, _, _ := server.count(); effects != 5 {
			t.Errorf("%d of the other tenant's 5 operations took effect beside a revoked token", effects)
		}
		clienttest.Must(t, stop())
	})
}

// TestRevokedAsked: a call, and a Resume, sends with refused credentials all the same: somebody asked for it now.
func TestRevokedAsked(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		source, server := &source{token: "old"}, &api{token: "new"}
		c, _ := clienttest.New(t, server, clienttest.Together(clienttest.On(j), func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize }))
		isRefused(t, "one", pay(t, c, "one"))
		isRefused(t, "two", pay(t, c, "two"))
		clienttest.Enqueue(t, c, 3)
		clienttest.Resume(t, c)
		if _, refused, _ := server.count(); refused != 5 {
			t.Errorf("%d sends, want 5", refused)
		}
	})
}

// TestRevokedRedirected: the one operation that tries refused credentials follows a redirect with them, too.
func TestRevokedRedirected(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		source := &source{token: "same"}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 401}, {Status: 307, Header: "Location: /moved"}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.Together(clienttest.On(j), func(cfg *oncehttp.Config) { cfg.Authorize = source.authorize }))
		clienttest.Enqueue(t, c, 1)
		stop := clienttest.Run(t, c)
		time.Sleep(10 * time.Minute)
		if rec := clienttest.Lookup(t, c, "k0"); rec.State != persist.StateConfirmed || w.Count() != 3 || !strings.HasSuffix(w.All()[2].URL, "/moved") {
			t.Errorf("%v after %d sends, %+v; want confirmed after 3: refused, redirected, done at the other path", rec.State, w.Count(), w.All())
		}
		clienttest.Must(t, stop())
	})
}
