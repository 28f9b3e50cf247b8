package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"github.com/slack-go/slack"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// api answers with the answers in turn; an empty one ends the connection. It keeps what it got.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	answers []string
	keys    []string // one for each request
	bodies  []string
}

func newAPI(t *testing.T, answers ...string) *api {
	t.Helper()
	a := &api{answers: answers}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.keys)
	a.keys, a.bodies = append(a.keys, r.Header.Get("Idempotency-Key")), append(a.bodies, string(body))
	if n >= len(a.answers) || a.answers[n] == "" {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, a.answers[n])
}

// newOnce makes a client with a journal in memory.
func newOnce(t *testing.T, cfg oncehttp.Config) (*oncehttp.Client, persist.Journal) {
	t.Helper()
	cfg.Journal = memory.New()
	cfg.Retry = oncehttp.Policy{MaxAttempts: attempts, MinDelay: time.Millisecond, MaxDelay: time.Millisecond}
	once, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := once.Close(); err != nil {
			t.Error(err)
		}
	})
	return once, cfg.Journal
}

const completion = `{"id":"chat-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"yes"}}]}`

// A call of a Stainless-made SDK is an operation where it is given a key, and net/http's where it is not.
func TestOpenAI(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "idemp:question:7"} {
		t.Run("key "+key, func(t *testing.T) {
			t.Parallel()
			server := newAPI(t, "", completion)
			once, _ := newOnce(t, oncehttp.Config{})
			client := newOpenAI(once, server.URL, secret)
			var opts []option.RequestOption
			if key != "" {
				opts = append(opts, option.WithHeader("Idempotency-Key", key))
			}
			answer, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
				Model: "any", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("is it?")},
			}, opts...)
			if key == "" { // one send, whose error is net/http's
				if err == nil || len(server.keys) != 1 {
					t.Errorf("%v, %v after %d sends; want net/http's error after one", answer, err, len(server.keys))
				}
				return
			}
			if err != nil || answer.ID != "chat-1" || len(server.keys) != 2 || server.keys[0] != key || server.keys[1] != key || server.bodies[0] != server.bodies[1] {
				t.Errorf("%v, %v; sent with the keys %q: %q", answer, err, server.keys, server.bodies)
			}
		})
	}
}

// A message of an SDK without keys is an operation that is sent once; a doubt is kept, and the same message is not sent again.
func TestSlack(t *testing.T) {
	t.Parallel()
	sent := `{"ok":true,"channel":"C1","ts":"1.1"}`
	t.Run("sent", func(t *testing.T) {
		t.Parallel()
		server := newAPI(t, sent)
		once, journal := newOnce(t, slackConfig())
		channel, ts, err := newSlack(once, server.URL+"/", secret).PostMessage("C1", slack.MsgOptionText("paid", false))
		if err != nil || channel != "C1" || ts != "1.1" {
			t.Fatal(channel, ts, err)
		}
		for rec, err := range journal.List(t.Context(), persist.Query{}) {
			if err != nil || rec.State != persist.StateConfirmed || !strings.HasSuffix(rec.Target, "/chat.postMessage") {
				t.Errorf("%+v, %v", rec, err)
			}
		}
		if server.keys[0] != "" {
			t.Errorf("the key %q was sent to an API that knows none", server.keys[0])
		}
	})
	t.Run("a read", func(t *testing.T) { // also after one without an answer
		t.Parallel()
		server := newAPI(t, "", `{"ok":true,"user":"ada"}`)
		once, journal := newOnce(t, slackConfig())
		client := newSlack(once, server.URL+"/", secret)
		if _, err := client.AuthTest(); err == nil || errors.As(err, new(*oncehttp.Error)) {
			t.Errorf("%v, want net/http's own error", err)
		}
		if who, err := client.AuthTest(); err != nil || who.User != "ada" {
			t.Errorf("%+v, %v", who, err)
		}
		for rec, err := range journal.List(t.Context(), persist.Query{}) {
			t.Errorf("%+v, %v is in the journal", rec, err)
		}
	})
	t.Run("in doubt", func(t *testing.T) {
		t.Parallel()
		server := newAPI(t, "", sent)
		once, _ := newOnce(t, slackConfig())
		client := newSlack(once, server.URL+"/", secret)
		for range 2 {
			if _, _, err := client.PostMessage("C1", slack.MsgOptionText("paid", false)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%v, want ErrOutcomeUnknown", err)
			}
		}
		if len(server.keys) != 1 {
			t.Errorf("%d sends, want 1", len(server.keys))
		}
	})
}
