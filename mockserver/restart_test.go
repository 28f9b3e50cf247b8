package mockserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// A restart breaks what is being handled, without an effect and with its key
// free, and keeps what was answered.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"method", "HTTP"} {
		for name, cfg := range map[string]mockserver.Config{
			"sleeping": {}, "held": {ByKey: map[string][]mockserver.Fault{"slow": {{Delay: time.Minute}}}},
		} {
			t.Run(name+" by "+how, func(t *testing.T) {
				t.Parallel()
				mocktest.Bubble(t, cfg, func(s *mockserver.Server, cl *client) {
					first := cl.Post("done").Want(t, 201)
					lost := make(chan reply, 1)
					go func() { lost <- cl.Do(request{Key: "slow", Path: "/payments?sleep=60000"}) }()
					synctest.Wait()
					start := time.Now()
					if how == "HTTP" {
						cl.Do(request{Path: "/_restart"}).Want(t, 200)
					} else {
						s.Restart()
					}
					(<-lost).WantLost(t)
					synctest.Wait()
					if took := time.Since(start); took != 0 {
						t.Errorf("it took %v", took)
					}
					mocktest.WantCounts(t, s, "slow", 1, 0)
					if again := cl.Post("done").Want(t, 201); again.Body != first.Body || !again.Replayed() {
						t.Errorf("got %q, want the stored %q", again.Body, first.Body)
					}
					if cl.Do(request{Key: "slow", Path: "/payments?sleep=60000"}).Want(t, 201).Replayed() {
						t.Error("what was broken off was replayed")
					}
					mocktest.WantCounts(t, s, "slow", 2, 1)
				})
			})
		}
	}
}
