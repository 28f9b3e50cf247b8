package session

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

// NaturalFlags are the values of --already-done, --lookup, --same and --ask-first, as given.
type NaturalFlags struct {
	done     []string
	lookup   string
	same     []string
	askFirst bool
}

// Bind adds the flags about business references to fs.
func (f *NaturalFlags) Bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.done, "already-done", nil, "an answer that says that a number in the request was used before, as STATUS:/POINTER=TEXT, such as 409:/error/code=duplicate_order; it judges what is begun with it; may be repeated")
	fs.StringVar(&f.lookup, "lookup", "", "where a GET then finds what has the number, such as '/orders?ref={order_id}'; #/POINTER behind it leads to the list in the answer; an answer that is itself a list is not read; asked for what is begun with it")
	fs.StringSliceVar(&f.same, "same", nil, "what must be equal in request and resource, such as amount,currency; where the resource has another name for it: order_id=/data/ref")
}

// Apply returns a copy of the profile with the answers and the lookup of --already-done, --lookup and --same, or the profile itself without these flags. The copy has a
// mark in its name, for records.
func (f *NaturalFlags) Apply(p *profile.Profile) (*profile.Profile, error) {
	if len(f.done) == 0 {
		if f.lookup != "" || len(f.same) > 0 {
			return nil, errors.New("--lookup and --same are about answers that --already-done names; say which")
		}
		return p, nil
	}
	own := *p
	own.Name += words.NaturalMark
	own.Duplicate = slices.Clone(p.Duplicate)
	for _, text := range f.done {
		m, err := parseAnswer(text)
		if err != nil {
			return nil, fmt.Errorf("--already-done %q: %w", words.Clip(text), err)
		}
		own.Duplicate = append(own.Duplicate, m)
	}
	switch {
	case f.lookup != "":
		ref, err := f.reference()
		if err != nil {
			return nil, err
		}
		own.Reference = ref
	case len(f.same) > 0:
		return nil, errors.New("--same: what is compared is what --lookup finds; say where")
	}
	if err := own.Check(); err != nil {
		return nil, fmt.Errorf("--lookup: %s", strings.TrimPrefix(err.Error(), "reference: "))
	}
	return &own, nil
}

// parseAnswer reads a value of --already-done, STATUS, STATUS:/POINTER or STATUS:/POINTER=TEXT, and returns a matcher of the answers that it means.
func parseAnswer(text string) (profile.Matcher, error) {
	status, where, more := strings.Cut(text, ":")
	n, err := strconv.Atoi(status)
	if err != nil || n < 400 || n > 599 {
		return profile.Matcher{}, errors.New("want a status from 400 to 599 first, such as 409:/error/code=duplicate_order")
	}
	m := profile.Matcher{Status: []int{n}}
	if !more {
		return m, nil
	}
	pointer, equals, compared := strings.Cut(where, "=")
	switch {
	case !words.IsPointer(pointer) || words.CheckPointers([]string{pointer}) != nil:
		return m, errors.New("want a JSON pointer behind the colon, such as /error/code")
	case compared && equals == "":
		return m, errors.New("want a text behind the =")
	}
	m.Pointer = pointer
	if compared {
		m.Equals = []string{equals}
	}
	return m, nil
}

// reference returns the lookup described by --lookup and --same: the GET that finds the resource of a request, and the values that must be equal in both. Values in the
// URL must be equal, too, by the same name unless --same gives another. For id --same must give one, since id is often the API's own number.
func (f *NaturalFlags) reference() (*profile.Reference, error) {
	if len(f.same) == 0 {
		return nil, errors.New("--lookup: --same is missing; say what else makes it the same order, such as --same amount,currency")
	}
	path, list, _ := strings.Cut(f.lookup, "#")
	ref := &profile.Reference{List: list}
	for _, text := range f.same {
		asked, found, renamed := strings.Cut(text, "=")
		s := profile.Same{Request: fieldPointer(asked), Resource: fieldPointer(found)}
		if !renamed {
			s.Resource = s.Request
		}
		if asked == "" || renamed && found == "" {
			return nil, fmt.Errorf("--same %q: want a field, or FIELD=/POINTER where the resource has another name for it", words.Clip(text))
		}
		ref.Same = append(ref.Same, s)
	}
	parts := strings.Split(path, "{")
	for i, part := range parts[1:] {
		name, rest, closed := strings.Cut(part, "}")
		if !closed || name == "" {
			return nil, fmt.Errorf("--lookup %q: want {field}, a field of the request's body, in braces", words.Clip(f.lookup))
		}
		if name == "path" { // it stands for the path of the request, and not for a field
			parts[i+1] = "{path}" + rest
			continue
		}
		pointer := fieldPointer(name)
		parts[i+1] = "{" + pointer + "}" + rest
		if !slices.ContainsFunc(ref.Same, func(s profile.Same) bool { return s.Request == pointer }) {
			if pointer == "/id" { // that of the resource is the API's own number at most APIs
				return nil, errors.New("--lookup: {id} must be equal in what is found, where id may be the API's own number; say the member with the file's: --same id=/MEMBER, or id=/id")
			}
			ref.Same = append(ref.Same, profile.Same{Request: pointer, Resource: pointer})
		}
	}
	ref.Path = strings.Join(parts, "")
	return ref, nil
}

// fieldPointer returns the JSON pointer to the member called name. If name is a pointer already, or empty, it is returned as it is.
func fieldPointer(name string) string {
	if name == "" || words.IsPointer(name) {
		return name
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// CheckReferenced returns an error if the request lacks a value that the lookup of its profile needs: nobody could learn its outcome after a lost answer. It
// is nil for a profile without a lookup, and for one whose requests are protected by a key, unless flags such as --lookup made it (NaturalMark).
func CheckReferenced(req *http.Request, body []byte, p *profile.Profile) error {
	if p.Reference == nil || !strings.Contains(p.Name, words.NaturalMark) && p.Carrier.Place != profile.Nowhere {
		return nil
	}
	fields := request.FieldsOf(req.Header, body)
	for _, s := range p.Reference.Same {
		if _, err := fields.Text(s.Request); err != nil {
			return fmt.Errorf("%s in the body: %w, and --lookup or --same needs it", s.Request, err)
		}
	}
	return nil
}
