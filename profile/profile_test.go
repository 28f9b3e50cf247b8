package profile_test

import (
	"encoding/json"
	"net/http"
	"net/textproto"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// each calls f for every profile of the package.
func each(t *testing.T, f func(*testing.T, *profile.Profile)) {
	t.Helper()
	if len(profile.Names()) == 0 {
		t.Fatal("no profiles")
	}
	for _, name := range profile.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, ok := profile.ByName(name)
			if !ok {
				t.Fatalf("ByName(%q) finds nothing", name)
			}
			f(t, p)
		})
	}
}

// TestNames: unique, spelled to be typed, and found again; the default is first.
func TestNames(t *testing.T) {
	t.Parallel()
	names := profile.Names()
	if names[0] != profile.Draft07().Name {
		t.Errorf("the first of %v is not the default", names)
	}
	for i, name := range names {
		if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`).MatchString(name) || slices.Index(names, name) != i {
			t.Errorf("name %q is not unique, or not lower case, digits, dots and dashes", name)
		}
	}
	for _, name := range []string{"", "nobody", "Stripe", " draft-07"} {
		if p, ok := profile.ByName(name); ok || p != nil {
			t.Errorf("ByName(%q) = %v", name, p)
		}
	}
}

// TestEveryFieldHasASource: what is said of an API says where it is from, when it
// was read and how sure it is; nothing is cited that is not said.
func TestEveryFieldHasASource(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *profile.Profile) {
		v := reflect.ValueOf(*p)
		said := map[string]bool{}
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if slices.Contains([]string{"Name", "Version", "Title", "Sources", "Doubted"}, name) || v.Field(i).IsZero() {
				continue
			}
			said[name] = true
			src, ok := p.Sources[name]
			if !ok {
				t.Errorf("%s is said without a source", name)
				continue
			}
			known := []profile.Confidence{profile.Primary, profile.Excerpt, profile.Secondary, profile.Assumed}
			if src.Ref == "" || !regexp.MustCompile(`^20\d\d-\d\d(-\d\d)?$`).MatchString(src.Date) || !slices.Contains(known, src.Confidence) {
				t.Errorf("%s: source %+v", name, src)
			}
		}
		for name := range p.Sources {
			if !said[name] {
				t.Errorf("a source for %s, of which nothing is said", name)
			}
		}
	})
}

// TestUnknownIsNeverNo: the zero value of a Fact is Unknown, and a window that is
// not promised is a cap that says so.
func TestUnknownIsNeverNo(t *testing.T) {
	t.Parallel()
	if profile.Fact(0) != profile.Unknown || profile.Unknown == profile.No || (profile.Window{}).Published != profile.Unknown || (profile.Stored{}).ServerError != profile.Unknown {
		t.Error("the zero Fact is not Unknown")
	}
	for f, want := range map[profile.Fact]string{profile.Unknown: "unknown", profile.No: "no", profile.Yes: "yes", profile.Fact(9): "unknown"} {
		if f.String() != want {
			t.Errorf("%d is %q, want %q", f, f, want)
		}
	}
	each(t, func(t *testing.T, p *profile.Profile) {
		if weak := p.Sources["Window"].Confidence == profile.Assumed || p.Sources["Window"].Confidence == profile.Secondary; p.Window.Published == profile.Unknown || p.Window.Published == profile.Yes && weak {
			t.Errorf("window %+v with a source that is %q", p.Window, p.Sources["Window"].Confidence)
		}
		for name, fact := range map[string]profile.Fact{"Success": p.Stored.Success, "ServerError": p.Stored.ServerError} {
			if fact == profile.No && p.Sources["Stored"].Confidence == profile.Assumed {
				t.Errorf("Stored.%s is a no that nobody said", name)
			}
		}
	})
}

// TestUsable: a profile of this package can be used as it is.
func TestUsable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *profile.Profile) {
		blank := p.Carrier == (profile.Carrier{})
		switch {
		case p.Version == "" || p.Title == "" || p.Window.Floor <= 0:
			t.Errorf("something is missing: %s, %s, %v", p.Version, p.Title, p.Window)
		case blank && !strings.Contains(strings.Join(p.Notes, " "), "carrier is blank"):
			t.Error("the carrier is blank, and no note says why")
		case blank, p.Carrier.Place == profile.Nowhere:
		case len(p.Methods) == 0 || len(p.RetryAfter) == 0 || len(p.NotActed.Again) == 0:
			t.Errorf("no methods, waits or statuses: %v, %v, %v", p.Methods, p.RetryAfter, p.NotActed)
		case p.Carrier.Place == profile.Header && textproto.TrimString(p.Carrier.Name) != p.Carrier.Name,
			p.Carrier.Place == profile.Body && !strings.HasPrefix(p.Carrier.Name, "/"):
			t.Errorf("carrier %+v", p.Carrier)
		case !slices.Contains([]profile.Place{profile.Header, profile.Body, profile.Form, profile.Query}, p.Carrier.Place),
			!slices.Contains([]profile.Encoding{profile.Raw, profile.SFString}, p.Encoding):
			t.Errorf("carrier %+v, encoding %q", p.Carrier, p.Encoding)
		case p.Key.MinBytes < 0 || p.Key.MaxBytes > 0 && p.Key.MaxBytes < p.Key.MinBytes || p.MinDelay < 0:
			t.Errorf("key rule %+v, least delay %v", p.Key, p.MinDelay)
		}
		for _, m := range p.Methods {
			if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodConnect}, m) || m != strings.ToUpper(m) {
				t.Errorf("method %s", m)
			}
		}
		lists := map[string][]profile.Matcher{
			"AlreadyDone": p.AlreadyDone, "Mismatch": p.Mismatch, "Poisoned": p.Poisoned, "BusinessConflict": p.BusinessConflict,
			"InProgress": p.InProgress, "Unclear": p.Unclear, "Replay": p.Replay, "Stored.Client": p.Stored.Client,
		}
		for name, list := range lists {
			for _, m := range list {
				checkMatcher(t, name, m)
			}
		}
		for _, status := range append(slices.Clone(p.NotActed.Again), p.NotActed.Stop...) {
			if status < 400 || status > 499 || status == http.StatusRequestTimeout || status == http.StatusConflict {
				t.Errorf("NotActed says that %d proves that nothing was done", status)
			}
		}
		if p.Lookup != nil && (len(p.AlreadyDone) == 0 || !strings.HasPrefix(p.Lookup.Pointer, "/") || !strings.Contains(p.Lookup.Path, "{id}")) {
			t.Errorf("lookup %+v", p.Lookup)
		}
	})
}

// checkMatcher: a matcher without any condition would match every answer.
func checkMatcher(t *testing.T, name string, m profile.Matcher) {
	t.Helper()
	if len(m.Status) == 0 && m.Header == "" && m.Pointer == "" {
		t.Errorf("%s matches everything", name)
	}
	if len(m.Has) > 0 && m.Header == "" || len(m.Equals) > 0 && m.Pointer == "" || m.Pointer != "" && m.Pointer[0] != '/' {
		t.Errorf("%s: %+v is half a condition", name, m)
	}
	for _, status := range m.Status {
		if status < 200 || status > 599 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	for _, word := range m.Has {
		if !regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`).MatchString(word) {
			t.Errorf("%s: %q is no single word and can never match", name, word)
		}
	}
}

// TestNobodySharesAProfile: who changes one changes nobody else's.
func TestNobodySharesAProfile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *profile.Profile) {
		before, _ := json.Marshal(p)
		p.Name, p.Carrier.Name = "changed", "X-Changed"
		for _, list := range [][]int{p.NotActed.Again, p.NotActed.Stop} {
			for i := range list {
				list[i] = 0
			}
		}
		for _, list := range [][]profile.Matcher{p.Mismatch, p.InProgress, p.Replay, p.AlreadyDone, p.Stored.Client} {
			for i := range list {
				for j := range list[i].Has {
					list[i].Has[j] = "changed"
				}
				list[i] = profile.Matcher{}
			}
		}
		for i := range p.RetryAfter {
			p.RetryAfter[i].Header = "changed"
		}
		clear(p.Sources)
		var name struct{ Name string }
		_ = json.Unmarshal(before, &name)
		again, _ := profile.ByName(name.Name)
		if after, _ := json.Marshal(again); string(after) != string(before) {
			t.Errorf("before %s\nafter  %s", before, after)
		}
	})
}

// TestKeptErrors: the profiles of the draft name no stored errors, and say what the draft asks a server to keep. Any other profile says what it states, also the
// copy of one under another name.
func TestKeptErrors(t *testing.T) {
	t.Parallel()
	another := profile.Draft07()
	another.Name = "draft-07@X-Key"
	for _, p := range []*profile.Profile{profile.Draft07(), profile.Draft07Quoted(), another} {
		if list := p.KeptErrors(); len(p.Stored.Client) != 0 || len(list) != 1 || list[0].Header != "Content-Type" || !slices.Contains(list[0].Status, 402) {
			t.Errorf("%s: %+v, stated %+v", p.Name, list, p.Stored.Client)
		}
	}
	ours := profile.Draft07()
	ours.Name = "ours"
	stated := profile.Draft07()
	stated.Stored.Client = []profile.Matcher{{Status: []int{418}}}
	if list := ours.KeptErrors(); len(list) != 0 {
		t.Errorf("a copy under another name: %+v", list)
	}
	if list := stated.KeptErrors(); len(list) != 1 || list[0].Status[0] != 418 {
		t.Errorf("stated: %+v", list)
	}
}
