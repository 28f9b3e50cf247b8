package profile

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Checks of the requests beside the operation: lookups, and requests for tokens and to cancel.

// checkLookup checks the facts for asking the API about an operation by the id of its resource: the pointer to the id in an answer, and the path of the
// resource, with {id} in the place of the id. {path} stands for the operation's own path.
func checkLookup(p *Profile) error {
	if err := checkPointer(p.Lookup.Pointer); err != nil {
		return fmt.Errorf("pointer: %w", err)
	}
	if path := p.Lookup.Path; !strings.Contains(path, "{id}") || path[0] != '/' && !strings.HasPrefix(path, "{path}/") {
		return fmt.Errorf("path: %q, want one that starts with / or {path}/ and holds {id}", path)
	}
	return nil
}

// checkTokenFact checks the fact on tokens (keys that the server hands out) of a file, which must say how to ask for one.
func checkTokenFact(p *Profile) error {
	if p.Token.Path == "" {
		return errors.New("path: it is missing")
	}
	return checkToken(p)
}

// checkToken checks the request by which the server hands out a token, used as the key. The zero Token is valid in a program: the client's
// Config.Token asks for it then.
func checkToken(p *Profile) error {
	t := p.Token
	if *t == (Token{}) {
		return nil // the client's Config.Token makes the request
	}
	switch plain := strings.ReplaceAll(t.Path, "{path}", ""); { // {path} is the operation's path, and no pointer
	case !slices.Contains([]string{"", http.MethodPost, http.MethodGet}, t.Method):
		return fmt.Errorf("method: %q, want POST or GET", t.Method)
	case !strings.HasPrefix(t.Path, "/") && !strings.HasPrefix(t.Path, "{path}"):
		return fmt.Errorf("path: %q, want one that starts with / or {path}", t.Path)
	default:
		for _, pointer := range append(referencePointers(plain), t.Pointer) {
			if err := checkPointer(pointer); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCancel checks the facts for cancelling an operation: For, the path of the operations, Path, that of the request that cancels one, and the
// pointer to the place of the key in its body.
func checkCancel(p *Profile) error {
	for name, path := range map[string]string{"for": p.Cancel.For, "path": p.Cancel.Path} {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{}") {
			return fmt.Errorf("%s: %q, want a path that starts with /", name, path)
		}
	}
	return checkPointer(p.Cancel.Pointer)
}

// checkReference refuses a lookup without a value of the request in its path, and one that does not compare this value in the
// resource: it could take another resource for the request's own. In the path {path} stands for the operation's path, and {/a} for the request's value at
// the pointer /a. Same pairs pointers into request and resource. FoundWithin is the time after which a lookup finds a resource for certain.
func checkReference(p *Profile) error {
	path := strings.TrimPrefix(p.Reference.Path, "{path}")
	pointers := referencePointers(path)
	switch {
	case path == p.Reference.Path && !strings.HasPrefix(path, "/"):
		return fmt.Errorf("path: %q, want one that starts with / or {path}", p.Reference.Path)
	case len(pointers) == 0:
		return fmt.Errorf("path: %q, want one that holds a value of the request, such as {/order_id}", p.Reference.Path)
	case p.Reference.FoundWithin < 0 || p.Reference.FoundWithin > minDelayMax:
		return fmt.Errorf("found_within: %v, want at most %v", p.Reference.FoundWithin, spanText(minDelayMax))
	case len(p.Reference.Same) == 0:
		return errors.New("same: want at least one value that is equal in request and resource")
	case !slices.ContainsFunc(p.Reference.Same, func(s Same) bool { return slices.Contains(pointers, s.Request) }):
		return errors.New("same: want the value that the path asks for among those that are equal")
	}
	if p.Reference.List != "" {
		pointers = append(pointers, p.Reference.List)
	}
	for _, same := range p.Reference.Same {
		pointers = append(pointers, same.Request, same.Resource)
	}
	for _, pointer := range pointers {
		if err := checkPointer(pointer); err != nil {
			return err
		}
	}
	return nil
}

// referencePointers returns the JSON pointers in a path with placeholders: the texts in braces.
func referencePointers(path string) []string {
	var pointers []string
	for _, part := range strings.Split(path, "{")[1:] {
		pointer, _, _ := strings.Cut(part, "}")
		pointers = append(pointers, pointer)
	}
	return pointers
}
