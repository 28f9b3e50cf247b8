package session

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// FindProfile returns the profile named by --profile: a built-in one, or that in a file. Its errors begin with the flag.
func FindProfile(name string) (*profile.Profile, error) {
	p, err := ProfileOf(name)
	if err != nil {
		return nil, fmt.Errorf("--profile %w", err)
	}
	return p, nil
}

// ProfileOf returns the built-in profile of that name, or the profile in that file. A file must not use a built-in name for other rules.
// Records hold the name only: another run would read the answers by the other profile.
func ProfileOf(name string) (*profile.Profile, error) {
	if !strings.ContainsAny(name, "/"+string(os.PathSeparator)) && !strings.HasSuffix(name, ".json") {
		p, ok := profile.ByName(name)
		if !ok {
			return nil, fmt.Errorf("%q is not known; see oncehttp profile list, or give a file: ./NAME.json", words.Clip(name))
		}
		return p, nil
	}
	p, err := profile.LoadFile(name)
	if err != nil {
		return nil, &terminal.SaidError{Text: strings.TrimPrefix(err.Error(), "profile: "), Err: err}
	}
	if built, taken := profile.ByName(p.Name); taken && !reflect.DeepEqual(built, p) {
		return nil, fmt.Errorf("%s: name: %q is that of a built-in profile that says otherwise; choose another", name, p.Name)
	}
	return p, nil
}

// Assuming returns the profile with the values of --assume, NAME=VALUE each, in place of its own assumptions about the API.
func Assuming(p *profile.Profile, values []string) (*profile.Profile, error) {
	for _, text := range values {
		name, value, found := strings.Cut(text, "=")
		if !found || value == "" {
			return nil, fmt.Errorf("--assume %q: want NAME=VALUE, such as window=24h", words.Clip(text))
		}
		assumed, err := p.Assume(name, value)
		if err != nil {
			return nil, &terminal.SaidError{Text: "--assume " + strings.TrimPrefix(err.Error(), "profile: "), Err: err}
		}
		p = assumed
	}
	return p, nil
}

// sayAssumed prints the assumptions of a profile about its API in one line; nothing if it has none. It is for --verbose.
func sayAssumed(w io.Writer, p *profile.Profile) {
	var names []string
	for _, a := range p.Assumptions() {
		names = append(names, a.String())
	}
	if len(names) > 0 {
		terminal.Say(w, "profile %s assumes %s; --assume NAME=VALUE says otherwise, see oncehttp profile show", p.Name, strings.Join(names, ", "))
	}
}
