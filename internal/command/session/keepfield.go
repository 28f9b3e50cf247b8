package session

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
)

// KeepNone is the value of --keep-field for keeping nothing.
const KeepNone = "none"

// BindKeepFields binds the flag --keep-field to the list at to. The parameter what describes the fields that are kept without the flag, for the help.
func BindKeepFields(fs *pflag.FlagSet, to *[]string, what string) {
	fs.StringArrayVar(to, "keep-field", nil,
		"JSON pointer to a value of a request, such as /amount, that the journal still has for audit when the request is pruned; may be repeated (default: "+what+")")
}

// BindDropRequest binds --drop-request.
func BindDropRequest(fs *pflag.FlagSet, to *bool) {
	fs.BoolVar(to, "drop-request", false,
		"drop the body of a request from the journal with the write that ends its operation as done (default: it stays with the answer, for audit and journal show)")
}

// KeepRequest returns the client's setting for --drop-request: drop the request after success, or keep it with the answer. The command keeps requests by default, as
// the library does not: an audit compares them.
func KeepRequest(drop bool) oncehttp.RequestKeeping {
	if drop {
		return oncehttp.DropRequestAfterSuccess
	}
	return oncehttp.KeepRequestWithAnswer
}

// ParseKeepFields checks the values of --keep-field, JSON pointers to values that the journal keeps of each request. Without any, it returns those of
// byDefault that may be kept: not secret by their name, no pointer twice, and no more than the journal takes. With the one value none it returns nil.
func ParseKeepFields(given, byDefault []string) ([]string, error) {
	var secrets request.Secrets
	switch {
	case slices.Equal(given, []string{KeepNone}):
		return nil, nil
	case len(given) > 0:
		if err := secrets.CheckPointers(given); err != nil {
			return nil, fmt.Errorf("--keep-field: %w", err)
		}
		return given, nil
	}
	var kept []string
	for _, p := range byDefault {
		if secrets.CheckPointers(append(slices.Clip(kept), p)) == nil {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// BatchKeepFields returns the fields kept by a batch without --keep-field: the fields of the key, shown by the key anyway, and the usual
// fields of an audit.
func BatchKeepFields(keyFields []string) []string {
	var list []string
	for _, name := range keyFields {
		list = append(list, words.PointerTo(name))
	}
	return append(list, "/reference", "/amount", "/currency")
}
