package conformance_test

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

// lateWait is longer than what the late samples take for an effect.
const lateWait = 500 * time.Millisecond

func waitLate(o *conformance.Options) { o.EffectWait = lateWait }

// effectLater counts an effect of the request some time after it was answered.
func (c *call) effectLater() {
	ref, s := c.ref, c.sample
	time.AfterFunc(300*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.effects[ref]++
	})
}

// lateFlaws have an effect too many 300 ms after they have answered.
func lateFlaws() []flaw {
	late := func(status int) func(*call, *entry) (reply, bool) {
		return func(c *call, e *entry) (reply, bool) {
			c.effectLater()
			if e.reply != nil && status == 0 {
				return *e.reply, true
			}
			return c.refusal(status, "late", "refused, and executed later"), true
		}
	}
	return []flaw{
		{
			name: "late-after-422", about: "Another request under a key is answered 422, and executed 300 ms later.",
			q: quirk{other: late(http.StatusUnprocessableEntity)}, change: waitLate,
			want: "conflict/not-executed scope/other-path-not-answered scope/other-method", blind: "-",
		}, {
			name: "late-after-409", about: "A duplicate in flight is answered 409, and executed 300 ms later.",
			q: quirk{pending: func(c *call, _ *entry) (reply, bool) {
				c.effectLater()
				a := c.refusal(http.StatusConflict, "busy", "wait")
				a.header["Retry-After"] = "1"
				return a, true
			}}, change: waitLate,
			want: "inflight/once", blind: "-",
		}, {
			name: "late-after-replay", about: "A repeat is given the stored answer, and executed 300 ms later.",
			q: quirk{repeat: late(0)}, change: waitLate,
			want: "replay/effects-once", blind: "-",
		},
	}
}

// errorFlaws go wrong after a failure.
func errorFlaws() []flaw {
	failing := func(c *call) bool { return c.r.URL.Query().Get("fail") != "" }
	charge := func(status string) quirk {
		return quirk{run: func(c *call) reply {
			if c.r.URL.Query().Get("fail") == status {
				c.effect()
			}
			return c.serve()
		}}
	}
	return []flaw{
		{
			name: "500-after-effect", about: "A request that had its effect is answered 500, and executed again by its repeat.",
			q: charge("500"), want: "outcome/5xx-resolves", blind: "-",
		}, {
			name: "402-after-effect", about: "A request that had its effect is answered 402, and executed again by its repeat.",
			q: charge("402"), want: "outcome/4xx", blind: "-",
		}, {
			name: "503-after-effect", about: "A request that had its effect is answered 503, and executed again by its repeat.",
			q: charge("503"), want: "outcome/transient-not-pinned", blind: "-",
		}, {
			name: "error-cached-as-200", about: "A stored error is given again with the status 200.",
			c: choices{keeps: true},
			q: quirk{repeat: func(_ *call, e *entry) (reply, bool) {
				a := *e.reply
				if a.status >= 400 {
					a.status = http.StatusOK
				}
				return a, true
			}},
			change: func(o *conformance.Options) { o.Profile = choices{keeps: true}.declare() },
			want:   "outcome/4xx outcome/5xx-resolves outcome/crash-resolves", blind: "outcome/4xx outcome/5xx-resolves",
		}, {
			name: "stuck-after-400", about: "A body that is refused leaves its key locked.",
			q:    quirk{stuck: func(_ *call, a reply) bool { return a.status == http.StatusBadRequest }},
			want: "outcome/corrected-body", blind: "outcome/corrected-body",
		}, {
			name: "stuck-after-500", about: "A 500 leaves its key locked.",
			q:    quirk{stuck: func(c *call, a reply) bool { return a.status == 500 && failing(c) }},
			want: "outcome/5xx-resolves", blind: "outcome/5xx-resolves",
		}, {
			name: "503-stored", about: "A 503 is stored for the whole window.",
			q: quirk{keep: func(_ *call, a reply) *reply {
				if a.status == 503 || a.status < 400 {
					return &a
				}
				return nil
			}},
			want: "?outcome/transient-not-pinned", blind: "?outcome/transient-not-pinned",
		},
	}
}

// flightFlaws go wrong while the first request is handled.
func flightFlaws() []flaw {
	return []flaw{
		{
			name: "waits-then-executes", about: "A duplicate waits for the first to end, and is executed then.",
			q: quirk{pending: func(c *call, e *entry) (reply, bool) {
				<-e.over
				return c.serve(), true
			}},
			want: "inflight/once", blind: "inflight/once",
		}, {
			name: "other-body-waits", about: "Another request under a key in flight waits, and is given the first one's answer.",
			q: quirk{other: func(c *call, e *entry) (reply, bool) {
				c.mu.Lock()
				running := e.reply == nil
				c.mu.Unlock()
				if !running {
					return reply{}, false
				}
				<-e.over
				if e.reply == nil {
					return reply{}, false
				}
				return *e.reply, true
			}},
			want: "inflight/other-body", blind: "inflight/other-body",
		}, {
			name: "lock-too-short", about: "The lock is given up after a second, though the work may take longer.",
			q: quirk{pending: func(c *call, e *entry) (reply, bool) {
				if time.Since(e.born) < time.Second {
					return reply{}, false
				}
				return c.serve(), true
			}},
			want: "inflight/long-work", blind: "inflight/long-work",
		}, {
			name: "local-locks", about: "Two nodes with a common store have a lock each.",
			q: quirk{pending: func(c *call, _ *entry) (reply, bool) {
				if c.number()%2 == 0 {
					return c.serve(), true
				}
				return reply{}, false
			}},
			want: "inflight/once", blind: "inflight/once",
		}, {
			name:   "abort-confirms",
			change: func(o *conformance.Options) { o.Skip = []string{"net/response-lost-then-retry"} }, // there the request is lost
			about:  "When the client hangs up the work is given up, and its success stored.",
			q: quirk{run: func(c *call) reply {
				ms, _ := strconv.Atoi(c.r.URL.Query().Get("sleep"))
				if ms == 0 {
					return c.serve()
				}
				select {
				case <-c.r.Context().Done():
					return reply{status: 201, header: map[string]string{"Content-Type": "application/json"}, body: `{"id":"p` + strconv.Itoa(9000+c.number()) + `"}`}
				case <-time.After(time.Duration(ms) * time.Millisecond):
					return c.succeed()
				}
			}},
			want: "net/abort-then-retry-resolves net/once", blind: "-",
		}, {
			name: "follower-releases", about: "A duplicate that hangs up takes the lock of the first with it.",
			c: choices{wait: true},
			q: quirk{pending: func(c *call, e *entry) (reply, bool) {
				select {
				case <-e.over:
					return reply{}, false
				case <-c.r.Context().Done():
					c.mu.Lock()
					defer c.mu.Unlock()
					id, _ := c.names()
					delete(c.entries, id)
					return reply{status: 499}, true
				}
			}},
			want: "inflight/follower-leaves", blind: "inflight/follower-leaves",
		}, {
			name: "leader-gone-invented", about: "A duplicate that waits while the first one's client hangs up is told of a payment that nobody makes.",
			c: choices{wait: true}, q: inventsWhenLeft(),
			change: func(o *conformance.Options) { o.Hold = 400 * time.Millisecond }, // a server sees late that somebody has left
			want:   "inflight/leader-leaves", blind: "inflight/leader-leaves",
		}, {
			name: "two-effects", about: "Each request has two effects.",
			q: quirk{run: func(c *call) reply {
				a := c.serve()
				if a.status < 300 {
					c.effect()
				}
				return a
			}},
			want: "replay/first-executes-once", blind: "-",
		},
	}
}

// inventsWhenLeft lets a duplicate wait for the first, and tells it of a success of
// its own making if the first one's client hangs up meanwhile.
func inventsWhenLeft() quirk {
	return quirk{
		run: func(c *call) reply {
			c.mu.Lock()
			c.notes["leader "+c.key.key] = c.r.Context()
			c.mu.Unlock()
			return c.serve()
		},
		pending: func(c *call, e *entry) (reply, bool) {
			c.mu.Lock()
			leader, _ := c.notes["leader "+c.key.key].(context.Context)
			c.mu.Unlock()
			if leader == nil || leader.Err() != nil {
				return reply{}, false // it waits as it should
			}
			select {
			case <-e.over:
				return reply{}, false
			case <-leader.Done(): // which it is, too, once it has been answered
				select {
				case <-e.over:
					return reply{}, false
				default:
				}
				return reply{
					status: http.StatusCreated, header: map[string]string{"Content-Type": "application/json"},
					body: `{"id":"taken-over-` + strconv.Itoa(c.number()) + `"}`,
				}, true
			}
		},
	}
}
