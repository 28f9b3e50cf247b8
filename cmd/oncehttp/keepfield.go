package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/request"
)

// keepNone is the value of --keep-field that keeps nothing.
const keepNone = "none"

// bindKeepFields binds --keep-field. what says what is kept without it.
func bindKeepFields(fs *pflag.FlagSet, to *[]string, what string) {
	fs.StringArrayVar(to, "keep-field", nil,
		"JSON pointer to a value of a request, such as /amount, that the journal still has for audit when the request is pruned; may be repeated (default: "+what+")")
}

// parseKeepFields checks the values of --keep-field; without any the default
// counts, as far as it may be kept.
func parseKeepFields(given, byDefault []string) ([]string, error) {
	var secrets request.Secrets
	switch {
	case slices.Equal(given, []string{keepNone}):
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

// batchKeepFields are what a batch keeps without --keep-field: the fields of the
// key, which the key itself shows anyway, and what most audits ask for.
func batchKeepFields(keyFields []string) []string {
	var list []string
	for _, name := range keyFields {
		list = append(list, pointerTo(name))
	}
	return append(list, "/reference", "/amount", "/currency")
}

// pointerTo is the JSON pointer to a member of this name.
func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
