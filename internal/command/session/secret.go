package session

import (
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/request"
)

// SecretFlags name headers with secret values, besides those called like a credential.
type SecretFlags struct{ names []string }

// Bind adds --secret-header to fs.
func (f *SecretFlags) Bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.names, "secret-header", nil, "a header with a secret value, by its name, such as X-Passcode; not needed for Authorization and the like; the value is not kept or shown; may be repeated")
}

// Names returns the header names given by --secret-header. An error names only the number of a wrong one, since it may be a secret value by mistake.
func (f *SecretFlags) Names() ([]string, error) {
	for i, name := range f.names {
		if err := request.CheckSecretHeader(name); err != nil {
			return nil, fmt.Errorf("--secret-header number %d: %w", i+1, err)
		}
	}
	return f.names, nil
}

// hiddenValue stands for the value of a secret header.
const hiddenValue = "(secret)"

// Shown returns a copy of the headers for display, in which the values of those named by --secret-header are hidden.
func (f *SecretFlags) Shown(h http.Header) http.Header {
	shown := h.Clone()
	for _, name := range f.names {
		if len(shown.Values(name)) > 0 {
			shown.Set(name, hiddenValue)
		}
	}
	return shown
}
