package oncehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// docs/credentials.md shows what is between the two lines of dashes.
// ----

// accessTokens fetches access tokens and keeps each for nine tenths of its life.
type accessTokens struct {
	url  string
	http *http.Client  // a plain one, with a timeout: a request for a token is no operation
	turn chan struct{} // holds one value: who has it fetches, the others wait

	mu        sync.Mutex // of the rest; never held while anything is waited for
	token     string
	freshTill time.Time
	notBefore time.Time // the server has said so
}

func newAccessTokens(url string) *accessTokens {
	t := &accessTokens{url: url, http: &http.Client{Timeout: 10 * time.Second}, turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t
}

// authorize is for Config.Authorize.
func (t *accessTokens) authorize(req *http.Request) error {
	token, err := t.get(req.Context())
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

// observe is for Config.Observe. A token that the API refuses is thrown away, whatever its age.
func (t *accessTokens) observe(_ context.Context, e oncehttp.Event) {
	if e.Kind == oncehttp.EventAnswered && e.Status == http.StatusUnauthorized {
		t.mu.Lock()
		t.token = ""
		t.mu.Unlock()
	}
}

// get returns a token that is fresh. All who need a new one wait for one request.
func (t *accessTokens) get(ctx context.Context) (string, error) {
	if token := t.kept(); token != "" {
		return token, nil
	}
	select {
	case <-t.turn:
		defer func() { t.turn <- struct{}{} }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if token := t.kept(); token != "" { // somebody has fetched it meanwhile
		return token, nil
	}
	return t.fetch(ctx)
}

func (t *accessTokens) kept() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().Before(t.freshTill) {
		return t.token
	}
	return ""
}

// fetch asks once. Where the answer is lost nobody knows whether a token was made, and nobody needs to: the next one is as
// good, and the lost one ends by itself.
func (t *accessTokens) fetch(ctx context.Context) (string, error) {
	t.mu.Lock()
	notBefore := t.notBefore
	t.mu.Unlock()
	if wait := time.Until(notBefore); wait > 0 {
		return "", fmt.Errorf("the token server is not asked for another %v", wait.Round(time.Second))
	}
	asked := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := t.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		t.mu.Lock()
		t.notBefore = time.Now().Add(time.Duration(min(max(seconds, 1), 300)) * time.Second)
		t.mu.Unlock()
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the token server answered %d", resp.StatusCode)
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&answer); err != nil {
		return "", errors.New("the token server's answer is not whole JSON") // and is not repeated: it may hold a token
	}
	if answer.Token == "" {
		return "", errors.New("the token server's answer has no access_token")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.freshTill = answer.Token, asked.Add(time.Duration(answer.Seconds)*time.Second*9/10)
	return t.token, nil
}

// ----

// Authorize fetches a token once, and again only when the API has refused it or it is nearly over. Where the token server's answer
// is lost nothing is sent to the API: Do says so, and the same call may be made again. Run does that by itself.
func ExampleConfig_accessToken() {
	var tokens, payments atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/payments" {
			payments.Add(1)
			w.WriteHeader(http.StatusCreated)
			return
		}
		n := tokens.Add(1)
		if n == 1 {
			panic(http.ErrAbortHandler) // the token was made, and the answer is lost
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3600}`, n)
	}))
	defer server.Close()

	access := newAccessTokens(server.URL + "/token")
	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Origins: []string{"http://127.0.0.1:*"}, Authorize: access.authorize, Observe: access.observe})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for _, order := range []string{"order1", "order1", "order2", "order3"} {
		req, err := http.NewRequest("POST", server.URL+"/payments", strings.NewReader(`{"amount":4200}`))
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.DoKey(req, oncehttp.NewScope("order").Key(order))
		if err != nil {
			fmt.Println(order, "no effect:", errors.Is(err, oncehttp.ErrNoEffect))
			continue
		}
		resp.Body.Close()
		fmt.Println(order, resp.StatusCode)
	}
	fmt.Println(tokens.Load(), "tokens,", payments.Load(), "payments")
	// Output:
	// order1 no effect: true
	// order1 201
	// order2 201
	// order3 201
	// 2 tokens, 3 payments
}
