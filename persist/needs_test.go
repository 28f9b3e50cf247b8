package persist_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// The text of what a record needs is one for each need, short, and is read back.
func TestNeeds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é long ", 40)
	texts := map[string]string{}
	for name, rec := range map[string]persist.Record{
		"plain":             {Profile: "stripe", ProfileVersion: "v1"},
		"no profile":        {},
		"credentials":       {Profile: "stripe", ProfileVersion: "v1", Omitted: []string{"Authorization"}},
		"a region":          {Profile: "stripe", ProfileVersion: "v1", Region: "eu west@=+%~"},
		"another region":    {Profile: "stripe", ProfileVersion: "v1", Region: "~eu"},
		"a credential":      {Profile: "stripe", ProfileVersion: "v1", Credential: "sha256:" + strings.Repeat("ab", 32)},
		"another one":       {Profile: "stripe", ProfileVersion: "v1", Credential: "sha256:" + strings.Repeat("ab", 31) + "ac"},
		"a version":         {Profile: "stripe", ProfileVersion: "v2"},
		"a version alone":   {ProfileVersion: "v2"},
		"an at sign":        {Profile: "stripe@v1", ProfileVersion: ""},
		"all, long":         {Profile: long, ProfileVersion: long + "1", Region: long, Credential: "sha256:" + long, Omitted: []string{"a"}},
		"longer":            {Profile: long + "2"},
		"sealed":            {Carrier: persist.CarrierSealed, CarrierName: "k"},
		"sealed with needs": {Carrier: persist.CarrierSealed, CarrierName: "k", SealedNeeds: "1 seal=k+l hidden=abc"},
	} {
		needs := rec.Needs()
		text := needs.String()
		if other, twice := texts[text]; twice {
			t.Errorf("%s and %s: both %q", name, other, text)
		}
		texts[text] = name
		if got := persist.ParseNeeds(text); got != needs || len(text) > persist.NeedsBytesMax/2 || strings.ContainsAny(text, "\n\x00") {
			t.Errorf("%s: %q of %d bytes is read as %+v, want %+v", name, text, len(text), got, needs)
		}
		if !needs.IsProfile(rec.Profile, rec.ProfileVersion) && rec.Carrier == "" || !needs.IsRegion(rec.Region) || !needs.IsCredential(rec.Credential) {
			t.Errorf("%s: %+v does not know its own", name, needs)
		}
		if rec.Region != "" && needs.IsRegion("us") || rec.Credential != "" && needs.IsCredential("") || needs.IsProfile("other", "") {
			t.Errorf("%s: %+v takes any", name, needs)
		}
	}
	if got := texts["1 auth region=eu profile=a@b"]; got != "" || (persist.Needs{Format: 1, Authorize: true, Region: "eu", Profile: "a", Version: "b"}).String() != "1 auth region=eu profile=a@b" {
		t.Errorf("%v", texts)
	}
}

// A text of a later version is never taken for one of this.
func TestNeedsOfLaterVersions(t *testing.T) {
	t.Parallel()
	for text, format := range map[string]int{"": 0, "2": 2, "2 seal=k": 2, "1 moon=full": 0, "1 auth auth": 0, "1  auth": 0, "1 region=%zz": 0, "x": 0, "1 profile=a": 0, "-1": 0} {
		if got := persist.ParseNeeds(text); got != (persist.Needs{Format: format}) {
			t.Errorf("%q is read as %+v, want format %d alone", text, got, format)
		}
	}
}
