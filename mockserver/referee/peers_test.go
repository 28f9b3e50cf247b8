package referee_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/referee"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// sendFunc sends one operation with a client, as its users would.
type sendFunc func(t *testing.T, transport http.RoundTripper) func(req *http.Request) (*http.Response, error)

// The referee over whole clients, ours first: what each breaks, as measured.
func TestRefereeJudgesClients(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open sendFunc
		want []string
	}{
		"oncehttp": {ours, nil},
		"a bare loop": {bareLoop, []string{
			"answer/in-progress-asked-again", "answer/lost-asked-again", "answer/unavailable-asked-again", "wait/grows", "wait/jittered",
		}},
		"go-retryablehttp, defaults": {retryable, []string{"answer/in-progress-asked-again", "answer/lost-asked-again", "wait/jittered"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judgeClient(t, c.open)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

// judgeClient plays the default script to a client and gives what it broke.
func judgeClient(t *testing.T, open sendFunc) (broken []string) {
	play(t, mockserver.Config{}, referee.DefaultScript(), func(judge *referee.Referee, cl *client) {
		send := open(t, cl.HTTP.Transport)
		for i := range referee.DefaultScript().Expect {
			body := fmt.Sprintf(`{"reference":"order-%c%d"}`, 'a'+i, i)
			req, err := http.NewRequest(http.MethodPost, cl.URL+"/payments", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := send(req)
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body) // what it loses there, it loses
				response.Body.Close()
			}
		}
		select {
		case <-judge.Finished():
		case <-time.After(time.Hour):
			t.Error("the referee did not see the end")
		}
		for _, c := range judge.Report().Cases {
			if c.Verdict == referee.Fail || c.Verdict == referee.Warn {
				broken = append(broken, c.ID)
				t.Logf("%s: %s", c.ID, c.Actual)
			}
		}
	})
	slices.Sort(broken)
	return broken
}

func ours(t *testing.T, transport http.RoundTripper) func(*http.Request) (*http.Response, error) {
	once, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return once.Do
}

func bareLoop(_ *testing.T, transport http.RoundTripper) func(*http.Request) (*http.Response, error) {
	plain := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	return func(req *http.Request) (response *http.Response, err error) {
		req.Header.Set("Idempotency-Key", string(oncehttp.RandomKey()))
		for range 5 {
			body, bodyErr := req.GetBody()
			if bodyErr != nil {
				return nil, bodyErr
			}
			again := req.Clone(context.Background())
			again.Body = body
			if response, err = plain.Do(again); err == nil && response.StatusCode < 500 {
				return response, nil
			}
			time.Sleep(100 * time.Millisecond)
		}
		return response, err
	}
}

func retryable(_ *testing.T, transport http.RoundTripper) func(*http.Request) (*http.Response, error) {
	rc := retryablehttp.NewClient()
	rc.Logger = nil
	rc.HTTPClient = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	return func(req *http.Request) (*http.Response, error) {
		req.Header.Set("Idempotency-Key", string(oncehttp.RandomKey()))
		wrapped, err := retryablehttp.FromRequest(req)
		if err != nil {
			return nil, err
		}
		return rc.Do(wrapped)
	}
}
