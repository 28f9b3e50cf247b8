package neighbours_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// What cannot be meant is refused when a client is made, by an error that names the field, and what is unusual but right is not.
func TestNeighbourRefusedConfig(t *testing.T) {
	t.Parallel()
	short := bound("POST")
	short.Window.Floor = time.Minute
	for name, test := range map[string]struct {
		field  string // empty: taken
		change func(c *oncehttp.Config)
	}{
		"a delay in ns":             {"MinDelay", func(c *oncehttp.Config) { c.Retry.MinDelay = 500 }},
		"a pause in ns":             {"MaxPause", func(c *oncehttp.Config) { c.Retry.MaxPause = 15 }},
		"an answer's time in ns":    {"AnswerTimeout", func(c *oncehttp.Config) { c.Retry.AnswerTimeout = 999 }},
		"1 us for an attempt":       {"AttemptTimeout", func(c *oncehttp.Config) { c.Retry.AttemptTimeout = time.Microsecond }},
		"an attempt over an answer": {"AttemptTimeout", func(c *oncehttp.Config) { c.Retry.AttemptTimeout, c.Retry.AnswerTimeout = time.Minute, 59*time.Second }},
		"as long as an answer":      {"", func(c *oncehttp.Config) { c.Retry.AttemptTimeout, c.Retry.AnswerTimeout = time.Minute, time.Minute }},
		"an age in ns":              {"EnqueueMaxAge", func(c *oncehttp.Config) { c.EnqueueMaxAge = 24 }},
		"a lease in ns":             {"Lease", func(c *oncehttp.Config) { c.Lease = 30 }},
		"a lease of 99 ms":          {"Lease", func(c *oncehttp.Config) { c.Lease = 99 * time.Millisecond }},
		"answers kept for ns":       {"KeepAnswer", func(c *oncehttp.Config) { c.KeepAnswer = 30 }},
		"keys kept for ns":          {"KeepKey", func(c *oncehttp.Config) { c.KeepKey = 365 }},
		"keys kept too short":       {"KeepKey", func(c *oncehttp.Config) { c.KeepKey = 23 * time.Hour }},
		"kept for a host's window": {"KeepKey", func(c *oncehttp.Config) {
			long := bound("POST")
			long.Window.Floor = 72 * time.Hour
			c.KeepKey, c.ProfileByHost = 48*time.Hour, map[string]*profile.Profile{"a.example.com": long}
		}},
		"a skew over a host's window": {"ClockSkew", func(c *oncehttp.Config) {
			c.ClockSkew, c.ProfileByHost = 2*time.Minute, map[string]*profile.Profile{"a.example.com": short}
		}},
		"a skew in ns":         {"ClockSkew", func(c *oncehttp.Config) { c.ClockSkew = 60 }},
		"a method's slip":      {"Methods", func(c *oncehttp.Config) { c.Methods = []string{"POST", "PACTH"} }},
		"a small method":       {"Methods", func(c *oncehttp.Config) { c.Methods = []string{"Post"} }},
		"no method":            {"Methods", func(c *oncehttp.Config) { c.Methods = []string{""} }},
		"a host with a scheme": {"ProfileByHost", hostNamed("https://a.example.com")}, "a host with a path": {"ProfileByHost", hostNamed("a.example.com/v1")},
		"a host's pattern": {"ProfileByHost", hostNamed("a.*.com")}, "a host in capitals": {"ProfileByHost", hostNamed("A.example.com")},
		"no host": {"ProfileByHost", hostNamed("")}, "no host, a port": {"ProfileByHost", hostNamed(":443")}, "a host with white space": {"ProfileByHost", hostNamed("a.example.com ")},
		"a port that is none": {"ProfileByHost", hostNamed("a.example.com:99999")}, "an IPv6 host": {"", hostNamed("[::1]:8080")}, "a host with a port": {"", hostNamed("a.example.com:8443")},
		"no profile for a host": {"ProfileByHost", func(c *oncehttp.Config) { c.ProfileByHost = map[string]*profile.Profile{"a.example.com": nil} }},
		"a header with a colon": {"SecretHeaders", func(c *oncehttp.Config) { c.SecretHeaders = []string{"X-Mine:"} }},
		"two headers in one":    {"SecretHeaders", func(c *oncehttp.Config) { c.SecretHeaders = []string{"X-Mine, X-Other"} }},
		"an empty header":       {"SecretHeaders", func(c *oncehttp.Config) { c.SecretHeaders = []string{"X-Mine", ""} }},
		"an empty parameter":    {"SecretParameters", func(c *oncehttp.Config) { c.SecretParameters = []string{""} }},
		"a field, no pointer":   {"KeepFields", func(c *oncehttp.Config) { c.KeepFields = []string{"amount"} }},
		"a pointer to all":      {"KeepFields", func(c *oncehttp.Config) { c.KeepFields = []string{""} }},
		"a key, no pointer":     {"KeyFromJSON", newKeyOf(oncehttp.NewScope("order"), "order/id")},
		"a key, one is none":    {"KeyFromJSON", newKeyOf(oncehttp.NewScope("order"), "/a", "b")},
		"a key, no scope":       {"KeyFromJSON", newKeyOf(oncehttp.Scope{}, "/a")},
		"a key, a part empty":   {"KeyFromJSON", newKeyOf(oncehttp.NewScope("order", ""), "/a")},
		"a key, no pointers":    {"KeyFromJSON", newKeyOf(oncehttp.NewScope("order"))},
		"ask first, no lookup":  {"AskFirst", func(c *oncehttp.Config) { c.Retry.AskFirst = true }},
		"ask first, a host can": {"", func(c *oncehttp.Config) {
			c.Retry.AskFirst, c.ProfileByHost = true, map[string]*profile.Profile{"a.example.com": onceShop()}
		}},
		"ask first, no duplicate": {"AskFirst", func(c *oncehttp.Config) {
			c.Retry.AskFirst, c.Profile = true, onceShop()
			c.Profile.Duplicate = nil
		}},
		"two ways to a key":    {"RequireKey", func(c *oncehttp.Config) { c.RequireKey = true; newKeyOf(oncehttp.NewScope("order"), "/a")(c) }},
		"a secret as its hash": {"Credential", func(c *oncehttp.Config) { c.Credential = "sk_live_1234567890" }},
		"attempts below none":  {"MaxAttempts", func(c *oncehttp.Config) { c.Retry.MaxAttempts = -1 }},
		"too many bytes":       {"MaxRequestBytes", func(c *oncehttp.Config) { c.MaxRequestBytes = 1<<30 + 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, open := range []bool{false, true} {
				var cfg oncehttp.Config
				test.change(&cfg)
				var c *oncehttp.Client
				var err error
				if open {
					c, err = oncehttp.Open(filepath.Join(testrun.Dir(t), "j.db"), cfg)
				} else {
					cfg.Journal = memory.New()
					c, err = oncehttp.New(cfg)
				}
				if err == nil {
					c.Close()
				}
				if test.field == "" && err != nil {
					t.Errorf("%v", err)
				}
				if test.field != "" && (!errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), test.field) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "sk_live")) {
					t.Errorf("%v, want one that names %s", err, test.field)
				}
			}
		})
	}
}

func hostNamed(host string) func(*oncehttp.Config) {
	return func(c *oncehttp.Config) { c.ProfileByHost = map[string]*profile.Profile{host: bound("POST")} }
}

func newKeyOf(scope oncehttp.Scope, pointers ...string) func(*oncehttp.Config) {
	return func(c *oncehttp.Config) { c.NewKey = oncehttp.KeyFromJSON(scope, pointers...) }
}
