package gate_test

import (
	"errors"
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

// pinnedTo is a client's configuration with this credential and region.
func pinnedTo(secret, region string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		if cfg.Region = region; secret != "" {
			cfg.Credential = oncehttp.CredentialHash(secret)
		}
		clienttest.OneAttempt(cfg)
	}
}

// TestPinned: an operation in doubt, and one that was enqueued, is sent on by a client with the same credential and region
// only. Another is refused, by Do, Resume and Abandon with Undo, and the operation stays as it was. One that nobody pinned is sent.
func TestPinned(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		secret, region string // of the first client
		next           func(*oncehttp.Config)
		want           string // of the refusal; empty: there is none
	}{
		"the same":              {"one", "eu", pinnedTo("one", "eu"), ""},
		"another credential":    {"one", "eu", pinnedTo("two", "eu"), "another credential"},
		"another region":        {"one", "eu", pinnedTo("one", "us"), `the region "eu"`},
		"no credential":         {"one", "", pinnedTo("", ""), "another credential"},
		"no region":             {"", "eu", pinnedTo("one", ""), `the region "eu"`},
		"it was not pinned":     {"", "", pinnedTo("one", "eu"), ""},
		"only the region was":   {"", "eu", pinnedTo("two", "eu"), ""},
		"upper case is another": {"", "eu", pinnedTo("", "EU"), `the region "eu"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				first, _ := clienttest.New(t, w, clienttest.On(j, pinnedTo(r.secret, r.region)))
				_, _ = first.DoKey(clienttest.Post(t, "{}"), "sent")
				if err := first.Enqueue(clienttest.Post(t, "{}"), "enqueued"); err != nil {
					t.Fatal(err)
				}
				if rec := clienttest.Lookup(t, first, "sent"); rec.Region != r.region || strings.Contains(rec.Credential, "one") || (rec.Credential == "") != (r.secret == "") {
					t.Errorf("region %q, credential %q", rec.Region, rec.Credential)
				}
				time.Sleep(time.Hour)
				next, _ := clienttest.New(t, w, clienttest.On(j, r.next))
				_, err := next.DoKey(clienttest.Post(t, "{}"), "sent")
				passed := 0
				for _, passErr := range next.Resume(t.Context()) {
					if passed++; (passErr == nil) != (r.want == "") || passErr != nil && !errors.Is(passErr, oncehttp.ErrConfig) {
						t.Errorf("Resume: %v", passErr)
					}
				}
				if r.want == "" {
					if err != nil || passed != 1 || w.Count() != 3 {
						t.Errorf("%v, %d resumed, %d sends", err, passed, w.Count())
					}
					return
				}
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), r.want) {
					t.Errorf("%v, want ErrConfig with %q", err, r.want)
				}
				if rec := clienttest.Lookup(t, next, "sent"); w.Count() != 1 || rec.State != persist.StatePending {
					t.Errorf("%d sends, %v", w.Count(), rec.State)
				}
			})
		})
	}
}

// TestPinnedAnswers: what is confirmed is answered from the journal whoever asks; only a new send needs the pin.
func TestPinnedAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "ok"}, {Status: 201, Body: strings.Repeat("x", 100)}}}
		j := memory.New()
		small := func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 10 }
		c, _ := clienttest.New(t, w, clienttest.On(j, pinnedTo("one", "eu"), small))
		for _, key := range []oncehttp.Key{"small", "large"} {
			resp, err := c.DoKey(clienttest.Post(t, `{}`), key)
			if err != nil {
				t.Fatal(err)
			}
			clienttest.Read(t, resp)
		}
		other, _ := clienttest.New(t, w, clienttest.On(j, pinnedTo("two", "eu"), small))
		if resp, err := other.DoKey(clienttest.Post(t, `{}`), "small"); err != nil || clienttest.Read(t, resp) != "ok" {
			t.Errorf("from the journal: %v", err)
		}
		if _, err := other.DoKey(clienttest.Post(t, `{}`), "large"); !errors.Is(err, oncehttp.ErrAnswerGone) || w.Count() != 2 {
			t.Errorf("too large to keep: %v, %d sends", err, w.Count())
		}
	})
}

// TestPinConfig: a credential that is not hashed is refused, and not repeated; so is a region that is no name.
func TestPinConfig(t *testing.T) {
	t.Parallel()
	for _, bad := range []oncehttp.Config{
		{Credential: "sk_live_secret"}, {Credential: "sha256:sk_live_secret"}, {Credential: oncehttp.CredentialHash("x") + "00"},
		{Credential: strings.TrimPrefix(oncehttp.CredentialHash("x"), "sha256:")}, {Region: "eu west"}, {Region: strings.Repeat("e", 65)},
	} {
		bad.Journal = memory.New()
		if _, err := oncehttp.New(bad); !errors.Is(err, oncehttp.ErrConfig) || strings.Contains(err.Error(), "sk_live") {
			t.Errorf("%q, %q: %v", bad.Credential, bad.Region, err)
		}
	}
	if got := oncehttp.CredentialHash("abc"); got != "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" { // FIPS 180-2, appendix B.1
		t.Errorf("the hash of abc is %s", got)
	}
}
