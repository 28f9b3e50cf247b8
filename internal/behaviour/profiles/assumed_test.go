package profiles_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAssumedIsSaidOnce: a new client logs one line for each profile that is not complete, with the names of its assumptions, as profile show has them. It
// logs none for complete profiles, for the draft, and where nothing is assumed.
func TestAssumedIsSaidOnce(t *testing.T) {
	t.Parallel()
	own, err := clienttest.Named(t, "gocardless").Assume("window", "2h")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		profile *profile.Profile
		byHost  map[string]*profile.Profile
		lines   []string
	}{
		"ready":              {clienttest.Named(t, "adyen"), nil, []string{"profile=adyen state=ready assumes=mismatch\n"}},
		"partial":            {clienttest.Named(t, "rapyd"), nil, []string{`profile=rapyd state=partial assumes="encoding, key, mismatch, in_progress, stored.success, stored.server_error"`}},
		"a window":           {own, nil, []string{`profile=gocardless state=ready assumes="key, window=2h, in_progress, stored.server_error"`}},
		"complete":           {profile.StripeV1(), nil, nil},
		"the draft":          {nil, nil, nil},
		"no keys":            {profile.None(), nil, nil},
		"by host":            {profile.StripeV1(), map[string]*profile.Profile{"a.example": clienttest.Named(t, "adyen")}, []string{"profile=adyen "}},
		"one of two by host": {clienttest.Named(t, "adyen"), map[string]*profile.Profile{"a.example": clienttest.Named(t, "adyen")}, []string{"profile=adyen "}},
	} {
		log := &clienttest.Log{}
		clientOf := func(cfg *oncehttp.Config) {
			cfg.Profile, cfg.ProfileByHost, cfg.Logger = c.profile, c.byHost, log.Logger()
		}
		client, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, clientOf)
		if len(c.lines) != log.Lines() || strings.Count(log.String(), `level=INFO msg="oncehttp: a profile assumes what no source states (said once)" profile=`) != len(c.lines) {
			t.Errorf("%s: %d lines, want %d:\n%s", name, log.Lines(), len(c.lines), log)
		}
		for _, line := range c.lines {
			if !log.Has(line) {
				t.Errorf("%s: no %q in\n%s", name, line, log)
			}
		}
		before := log.Lines()
		if c.profile != nil && c.profile.Name == "adyen" {
			if _, err := client.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || log.Lines() != before {
				t.Errorf("%s: %v, and a simple sale logs:\n%s", name, err, log)
			}
		}
	}
}
