package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestConfigIsChecked: a value that would do nothing, or something else than it says, is refused by New, with an error of
// one line that names the field and says what to do.
func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	type config = oncehttp.Config
	own := func(change func(*profile.Profile)) func(*config) {
		return func(cfg *config) { cfg.Profile = clienttest.OwnProfile(); change(cfg.Profile) }
	}
	for name, r := range map[string]struct {
		change func(*config)
		says   []string
	}{
		"a timeout without its unit":        {func(c *config) { c.Retry.AttemptTimeout = 30 }, []string{"Retry.AttemptTimeout", "30ns", "30*time.Second"}},
		"a timeout nobody can meet":         {func(c *config) { c.Retry.AttemptTimeout = time.Microsecond }, []string{"Retry.AttemptTimeout", "at least 1ms"}},
		"an answer nobody can give":         {func(c *config) { c.Retry.AnswerTimeout = time.Microsecond }, []string{"Retry.AnswerTimeout", "at least 1ms"}},
		"a timeout over that of the answer": {func(c *config) { c.Retry.AttemptTimeout, c.Retry.AnswerTimeout = time.Minute, time.Second }, []string{"Retry.AttemptTimeout", "1m0s", "Retry.AnswerTimeout", "1s"}},
		"minutes without their unit":        {func(c *config) { c.Retry.MaxElapsed = 2 }, []string{"Retry.MaxElapsed", "2ns", "2*time.Second"}},
		"a delay without its unit":          {func(c *config) { c.Retry.MaxDelay = 30 }, []string{"Retry.MaxDelay", "30ns"}},
		"a least delay without its unit":    {func(c *config) { c.Retry.MinDelay = 500 }, []string{"Retry.MinDelay", "500ns"}},
		"a Retry-After without its unit":    {func(c *config) { c.Retry.MaxRetryAfter = 60 }, []string{"Retry.MaxRetryAfter", "60ns"}},
		"hours without their unit":          {func(c *config) { c.EnqueueMaxAge = 24 }, []string{"EnqueueMaxAge", "24ns"}},
		"answers for 24 ns":                 {func(c *config) { c.KeepAnswer = 24 }, []string{"KeepAnswer", "24ns"}},
		"a skew without its unit":           {func(c *config) { c.ClockSkew = 60 }, []string{"ClockSkew", "60ns"}},
		"keys for less than the window":     {func(c *config) { c.KeepKey = 23 * time.Hour }, []string{"KeepKey", "23h", "24h", "draft-07", "leave it out"}},
		"keys for less than a host's window": {func(c *config) {
			c.KeepKey, c.ProfileByHost = 25*time.Hour, hosted(func(p *profile.Profile) { p.Window.Floor = 26 * time.Hour })
		}, []string{"KeepKey", "25h", "26h", `"own"`}},
		"texts for less than the window": {func(c *config) { c.KeepText = 23 * time.Hour }, []string{"KeepText", "23h", "24h", "draft-07", "leave it out"}},
		"no keys, and answers for less":  {func(c *config) { c.KeepKey, c.KeepAnswer = -1, 3*time.Hour }, []string{"KeepKey", "KeepAnswer", "3h", "24h"}},
		"neither keys nor answers":       {func(c *config) { c.KeepKey, c.KeepAnswer = -1, -1 }, []string{"KeepKey", "KeepAnswer", "24h"}},
		"a skew over the window":         {func(c *config) { c.ClockSkew = 25 * time.Hour }, []string{"ClockSkew", "25h", "24h", "draft-07"}},
		"a skew over a host's window": {func(c *config) {
			c.ClockSkew, c.ProfileByHost = time.Hour, hosted(func(p *profile.Profile) { p.Window.Floor = 30 * time.Minute })
		}, []string{"ClockSkew", "1h", "30m", `"own"`}},
		"a method in the wrong order":       {func(c *config) { c.Methods = []string{"POTS"} }, []string{"Methods", "POTS", "POST"}},
		"a method with a letter more":       {func(c *config) { c.Methods = []string{"POST", "PATCHH"} }, []string{"Methods", "PATCHH", "PATCH"}},
		"a method with a letter less":       {func(c *config) { c.Methods = []string{"DELET"} }, []string{"Methods", "DELET", "DELETE"}},
		"a small method in the wrong order": {func(c *config) { c.Methods = []string{"psot"} }, []string{"Methods", "psot", "POST"}},
		"a host pattern": {func(c *config) {
			c.ProfileByHost = map[string]*profile.Profile{"*.stripe.com": clienttest.OwnProfile()}
		}, []string{"ProfileByHost", "*.stripe.com", "each host"}},
		"a domain": {func(c *config) { c.ProfileByHost = map[string]*profile.Profile{".stripe.com": clienttest.OwnProfile()} }, []string{"ProfileByHost", ".stripe.com"}},
		"a port that is none": {func(c *config) {
			c.ProfileByHost = map[string]*profile.Profile{"api.stripe.com:99999": clienttest.OwnProfile()}
		}, []string{"ProfileByHost", "99999"}},
		"a list of hosts": {func(c *config) {
			c.ProfileByHost = map[string]*profile.Profile{"a.test,b.test": clienttest.OwnProfile()}
		}, []string{"ProfileByHost", "a.test,b.test"}},
		"a key from JSON without a slash":    {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "order/id") }, []string{"NewKey", "KeyFromJSON", "order/id", "JSON pointer"}},
		"a key from JSON, a wrong escape":    {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/a~b") }, []string{"NewKey", "KeyFromJSON", "/a~b", "~0"}},
		"a key from JSON, one pointer twice": {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/id", "/id") }, []string{"NewKey", "KeyFromJSON", "/id", "twice"}},
		"a key from JSON without pointers":   {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order")) }, []string{"NewKey", "KeyFromJSON", "pointer"}},
		"a key from JSON in no scope":        {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.Scope{}, "/id") }, []string{"NewKey", "KeyFromJSON", "NewScope"}},
		"a key from JSON in an empty scope":  {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope(), "/id") }, []string{"NewKey", "KeyFromJSON", "NewScope"}},
		"a key from JSON, an empty part":     {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order", ""), "/id") }, []string{"NewKey", "KeyFromJSON", "NewScope"}},
		"a key from JSON, an empty prefix":   {func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order").Prefix(""), "/id") }, []string{"NewKey", "KeyFromJSON", "NewScope"}},
		"a NewKey that is never asked": {func(c *config) {
			c.RequireKey, c.NewKey = true, func(*http.Request) (oncehttp.Key, error) { return "k", nil }
		}, []string{"NewKey", "RequireKey", "leave one out"}},
		"a dropped member without a slash":  {func(c *config) { c.DropAnswer = []string{"secret"} }, []string{"DropAnswer", "secret", "JSON pointer"}},
		"a dropped member twice":            {func(c *config) { c.DropAnswer = []string{"/a", "/a"} }, []string{"DropAnswer", "/a", "twice"}},
		"too many dropped members":          {func(c *config) { c.DropAnswer = dropped(33) }, []string{"DropAnswer", "33", "32"}},
		"a dropped member of a verdict":     {func(c *config) { c.DropAnswer = []string{"/card"}; c.Profile = reading("/card/status") }, []string{"DropAnswer", "/card", "/card/status", "reads", "verdict"}},
		"a part of a matched value dropped": {func(c *config) { c.DropAnswer = []string{"/title/text"}; c.Profile = matching("/title") }, []string{"DropAnswer", "/title/text", "/title", "mismatch"}},
		"a member of a host's profile": {func(c *config) {
			c.DropAnswer = []string{"/title"}
			c.ProfileByHost = map[string]*profile.Profile{"api.example.com": matching("/title")}
		}, []string{"DropAnswer", "/title", "mismatch"}},
		"a kept field with a wrong escape":  {func(c *config) { c.KeepFields = []string{"/a~b"} }, []string{"KeepFields", "/a~b"}},
		"a token without facts":             {func(c *config) { c.Token = noToken }, []string{"Token", "Profile.Token"}},
		"a token beside a path for tokens":  {func(c *config) { c.Token, c.Profile = noToken, servertest.Ticketed() }, []string{"Token", "Path"}},
		"asking first without facts":        {func(c *config) { c.Retry.AskFirst = true }, []string{"Retry.AskFirst", "Reference", "Duplicate"}},
		"asking first without a duplicate":  {func(c *config) { c.Retry.AskFirst = true; c.Profile = servertest.ByNumber(); c.Profile.Duplicate = nil }, []string{"Retry.AskFirst", "Duplicate"}},
		"asking first without a reference":  {func(c *config) { c.Retry.AskFirst = true; c.Profile = servertest.ByNumber(); c.Profile.Reference = nil }, []string{"Retry.AskFirst", "Reference"}},
		"a secret header with its value":    {func(c *config) { c.SecretHeaders = []string{"X-Pan: 4111"} }, []string{"SecretHeaders", "name of a header"}},
		"a secret header with a colon":      {func(c *config) { c.SecretHeaders = []string{"X-Pan:"} }, []string{"SecretHeaders", "name of a header"}},
		"an empty secret header":            {func(c *config) { c.SecretHeaders = []string{""} }, []string{"SecretHeaders", "name of a header"}},
		"a secret header with a space":      {func(c *config) { c.SecretHeaders = []string{"X-Pan "} }, []string{"SecretHeaders", "name of a header"}},
		"secret headers in one text":        {func(c *config) { c.SecretHeaders = []string{"X-Pan, X-Cvc"} }, []string{"SecretHeaders", "name of a header"}},
		"the key as a secret header":        {func(c *config) { c.SecretHeaders = []string{"idempotency-key"} }, []string{"SecretHeaders", "idempotency-key", "draft-07"}},
		"a framing header as a secret":      {func(c *config) { c.SecretHeaders = []string{"Content-Length"} }, []string{"SecretHeaders", "Content-Length"}},
		"an empty secret parameter":         {func(c *config) { c.SecretParameters = []string{""} }, []string{"SecretParameters", "name of a query parameter"}},
		"a secret parameter with its mark":  {func(c *config) { c.SecretParameters = []string{"?pan"} }, []string{"SecretParameters", "name of a query parameter"}},
		"a secret parameter with its value": {func(c *config) { c.SecretParameters = []string{"pan=1"} }, []string{"SecretParameters", "name of a query parameter"}},
		"secret parameters in one text":     {func(c *config) { c.SecretParameters = []string{"pan, cvc"} }, []string{"SecretParameters", "name of a query parameter"}},
		"the key as a secret parameter": {func(c *config) {
			own(func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Query, Name: "ref"} })(c)
			c.SecretParameters = []string{"ref"}
		}, []string{"SecretParameters", "ref", `"own"`}},
		"workers beyond all bounds":           {func(c *config) { c.ResumeWorkers = math.MaxInt }, []string{"ResumeWorkers", "at most"}},
		"deliveries beyond all bounds":        {func(c *config) { c.ResultWorkers = math.MaxInt }, []string{"ResultWorkers", "at most"}},
		"a transport that retries by itself":  {func(c *config) { c.Transport = &retryablehttp.RoundTripper{} }, []string{"Transport", "retries"}},
		"a typed nil transport":               {func(c *config) { c.Transport = (*http.Transport)(nil) }, []string{"Transport", "nil *http.Transport"}},
		"a matcher's pointer without a slash": {own(func(p *profile.Profile) { p.Mismatch = []profile.Matcher{{Pointer: "error/code"}} }), []string{"Profile", "mismatch", "error/code", "JSON pointer"}},
		"a matcher of every answer":           {own(func(p *profile.Profile) { p.AlreadyDone = []profile.Matcher{{}} }), []string{"Profile", "already_done", "condition"}},
		"a matcher of no answer":              {own(func(p *profile.Profile) { p.InProgress = []profile.Matcher{{Status: []int{42}}} }), []string{"Profile", "in_progress", "42"}},
		"a matcher's value without a pointer": {own(func(p *profile.Profile) { p.Poisoned = []profile.Matcher{{Status: []int{400}, Equals: []string{"x"}}} }), []string{"Profile", "poisoned", "pointer"}},
		"a stored answer without a condition": {own(func(p *profile.Profile) { p.Stored.Client = []profile.Matcher{{}} }), []string{"Profile", "stored", "condition"}},
		"a wait's pointer without a slash":    {own(func(p *profile.Profile) { p.RetryAfter = []profile.Hint{{Pointer: "wait", Unit: profile.Milliseconds}} }), []string{"Profile", "retry_after", "wait"}},
		"a wait without a unit":               {own(func(p *profile.Profile) { p.RetryAfter = []profile.Hint{{Header: "Retry-After"}} }), []string{"Profile", "retry_after", "unit"}},
		"a 500 that says nothing was done":    {own(func(p *profile.Profile) { p.NotActed.Again = []int{500} }), []string{"Profile", "not_acted", "500"}},
		"a method of a profile":               {own(func(p *profile.Profile) { p.Methods = []string{"POTS"} }), []string{"Profile", "methods", "POTS", "POST"}},
		"a small method of a profile":         {own(func(p *profile.Profile) { p.Methods = []string{"post"} }), []string{"Profile", "methods", "post"}},
		"a compared header that is none":      {own(func(p *profile.Profile) { p.Fingerprint = []string{"X Version"} }), []string{"Profile", "fingerprint", "X Version"}},
		"an account header that is none":      {own(func(p *profile.Profile) { p.AccountHeaders = []string{""} }), []string{"Profile", "account_headers"}},
		"an encoding that is none":            {own(func(p *profile.Profile) { p.Encoding = "quoted" }), []string{"Profile", "encoding", "quoted"}},
		"a key that nobody can make":          {own(func(p *profile.Profile) { p.Key.MinBytes, p.Key.MaxBytes = 10, 5 }), []string{"Profile", "key", "no key"}},
		"advice that cannot be told apart":    {own(func(p *profile.Profile) { p.ShouldRetry = profile.ShouldRetry{Header: "X-Retry", Yes: "1", No: "1"} }), []string{"Profile", "should_retry"}},
		"the first time in the key's header":  {own(func(p *profile.Profile) { p.FirstSent = "Idempotency-Key" }), []string{"Profile", "first_sent"}},
		"a negative delay of a profile":       {own(func(p *profile.Profile) { p.MinDelay = -time.Second }), []string{"Profile", "min_delay"}},
		"a wrong profile of a host": {func(c *config) {
			c.ProfileByHost = hosted(func(p *profile.Profile) { p.Mismatch = []profile.Matcher{{Pointer: "x"}} })
		}, []string{`ProfileByHost["b.test"]`, "mismatch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := oncehttp.Config{Journal: memory.New()}
			r.change(&cfg)
			c, err := oncehttp.New(cfg)
			if c != nil || !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) || strings.Contains(fmt.Sprint(err), "\n") {
				t.Fatalf("%v, want ErrConfig in one line", err)
			}
			for _, want := range r.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want it to say %s", err, want)
				}
			}
		})
	}
}

// hosted gives the host b.test a profile of its own.
func hosted(change func(*profile.Profile)) map[string]*profile.Profile {
	p := clienttest.OwnProfile()
	change(p)
	return map[string]*profile.Profile{"b.test": p}
}

func noToken(context.Context, persist.Record) (string, error) { return "", errors.New("no token") }

// TestConfigIsTaken: values at the bounds of what is refused, and unusual ones that mean something, are taken.
func TestConfigIsTaken(t *testing.T) {
	t.Parallel()
	type config = oncehttp.Config
	for name, change := range map[string]func(*config){
		"a timeout at its least":            func(c *config) { c.Retry.AttemptTimeout, c.Retry.AnswerTimeout = time.Millisecond, time.Millisecond },
		"a timeout like that of the answer": func(c *config) { c.Retry.AttemptTimeout, c.Retry.AnswerTimeout = time.Minute, time.Minute },
		"only the time for the answer":      func(c *config) { c.Retry.AnswerTimeout = time.Second },
		"the least delays":                  func(c *config) { c.Retry.MinDelay, c.Retry.MaxDelay = 1, 1 },
		"no wait for Retry-After":           func(c *config) { c.Retry.MaxRetryAfter = 1 },
		"keys for the window":               func(c *config) { c.KeepKey = 24 * time.Hour },
		"texts for the window":              func(c *config) { c.KeepText = 24 * time.Hour },
		"texts as long as answers":          func(c *config) { c.KeepText = -1 },
		"keys as long as answers":           func(c *config) { c.KeepKey = -1 },
		"no keys, answers for the window":   func(c *config) { c.KeepKey, c.KeepAnswer = -1, 24*time.Hour },
		"no answers":                        func(c *config) { c.KeepAnswer = -1 },
		"a skew of the window":              func(c *config) { c.ClockSkew = 24 * time.Hour },
		"no method":                         func(c *config) { c.Methods = []string{} },
		"methods of our own":                func(c *config) { c.Methods = []string{"PURGE", "purge", "CHARGE", "MKCOL", "PUT", "DELETE"} },
		"hosts": func(c *config) {
			c.ProfileByHost = map[string]*profile.Profile{"a_b.test": clienttest.OwnProfile(), "münchen.test": clienttest.OwnProfile(), "localhost:8080": clienttest.OwnProfile(), "10.0.0.1": clienttest.OwnProfile(), "xn--mnchen-3ya.test": clienttest.OwnProfile()}
		},
		"keys from JSON": func(c *config) { c.NewKey = oncehttp.KeyFromJSON(oncehttp.NewScope("order"), "/a~1b", "/0") },
		"a key from JSON in a function": func(c *config) {
			k := oncehttp.KeyFromJSON(oncehttp.Scope{}, "x")
			c.NewKey = func(r *http.Request) (oncehttp.Key, error) { return k(r) }
		},
		"a token for a host": func(c *config) {
			c.Token = noToken
			c.ProfileByHost = hosted(func(p *profile.Profile) { p.Token = &profile.Token{} })
		},
		"a token for what ProfileOf knows": func(c *config) { c.Token, c.ProfileOf = noToken, func(persist.Record) *profile.Profile { return nil } },
		"asking first for a host": func(c *config) {
			c.Retry.AskFirst, c.ProfileByHost = true, map[string]*profile.Profile{"b.test": servertest.ByNumber()}
		},
		"asking first what ProfileOf knows": func(c *config) {
			c.Retry.AskFirst, c.ProfileOf = true, func(persist.Record) *profile.Profile { return nil }
		},
		"secret headers and parameters":       func(c *config) { c.SecretHeaders, c.SecretParameters = []string{"x-pan"}, []string{"card[pan]", "pan"} },
		"a key that is required, and no more": func(c *config) { c.RequireKey = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := oncehttp.Config{Journal: memory.New()}
			change(&cfg)
			c, err := oncehttp.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}
}

// TestClientAsTransport: a client whose Transport is another client of this package would journal each send as an operation
// of its own; New refuses it.
func TestClientAsTransport(t *testing.T) {
	t.Parallel()
	first, _ := clienttest.New(t, &wiretest.Wire{}, nil)
	for name, rt := range map[string]http.RoundTripper{"Transport": first.Transport(), "StandardClient": first.StandardClient().Transport} {
		_, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: rt})
		if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "Transport") {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

// TestKeyFromJSONMistakes: where New cannot see them, each call is refused, and says what is wrong.
func TestKeyFromJSONMistakes(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	wrong := oncehttp.KeyFromJSON(oncehttp.Scope{}, "/id")
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.NewKey = func(r *http.Request) (oncehttp.Key, error) { return wrong(r) }
	})
	if _, err := c.Do(clienttest.Post(t, `{"id":1}`)); !errors.Is(err, oncehttp.ErrKeyInvalid) || !strings.Contains(err.Error(), "NewScope") || w.Count() != 0 {
		t.Errorf("%v after %d sends", err, w.Count())
	}
}

// TestOpenIsForFiles: what names a database is no file: the error names the package that opens it, and repeats no password.
func TestOpenIsForFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for at, says := range map[string]string{
		"postgres://shop:hunter2@db.test/shop":                "persist/postgres",
		"PostgreSQL://shop:hunter2@db.test/shop":              "persist/postgres",
		"host=db.test user=shop password=hunter2 dbname=shop": "persist/postgres",
		"dbname=shop password=hunter2":                        "persist/postgres",
		"postgres:hunter2":                                    "persist/postgres",
		"mysql://shop:hunter2@db.test/shop":                   "persist/mysql",
		"mariadb://shop:hunter2@db.test/shop":                 "persist/mysql",
		"shop:hunter2@tcp(db.test:3306)/shop":                 "persist/mysql",
		"shop:hunter2@unix(/run/mysqld.sock)/shop":            "persist/mysql",
		"redis://:hunter2@db.test":                            "persist/redis",
		"rediss://:hunter2@db.test":                           "persist/redis",
		"sqlite://hunter2":                                    "want the path of a file",
		"file:///hunter2":                                     "want the path of a file",
		"":                                                    "want the path of a file",
	} {
		c, err := oncehttp.Open(at, oncehttp.Config{})
		if c != nil || !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want ErrConfig that names %s", at, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats a password: %v", at, err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
	for _, path := range []string{"payments.db", "postgres.db", "postgres", "host=a", "a@b.db"} {
		c, err := oncehttp.Open(path, oncehttp.Config{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		c.Close()
	}
}

// TestOpenTwice: a file that this process has open already is told from one of another process, by whatever name it is
// opened, and whoever opened it.
func TestOpenTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "payments.db"), filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	c, err := oncehttp.Open(path, oncehttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := oncehttp.Open(name, oncehttp.Config{})
		if !errors.Is(err, persist.ErrLocked) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "this process has it open") {
			t.Errorf("%v, want ErrLocked that says who", err)
		}
		if err != nil && strings.Contains(err.Error(), "another process") {
			t.Errorf("%v; there is no other process", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := oncehttp.Open(link, oncehttp.Config{}); !errors.Is(err, persist.ErrLocked) || !strings.Contains(err.Error(), "this process has it open") {
		t.Errorf("%v, want ErrLocked that says who", err)
	}
}

// dropped returns n pointers.
func dropped(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("/m%d", i))
	}
	return list
}

// reading returns a profile with a verdict at a pointer.
func reading(pointer string) *profile.Profile {
	p := clienttest.OwnProfile()
	p.Verdicts = []profile.Verdict{{Pointer: pointer, Equals: []string{"ok"}, Proves: profile.ProvesSucceeded}}
	return p
}

// matching returns a profile with a matcher at a pointer.
func matching(pointer string) *profile.Profile {
	p := clienttest.OwnProfile()
	p.Mismatch = []profile.Matcher{{Status: []int{422}, Pointer: pointer}}
	return p
}
