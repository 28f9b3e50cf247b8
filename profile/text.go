package profile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// The texts of facts for people.

// String returns the place of the key in words; "" for the zero value.
func (c Carrier) String() string {
	switch c.Place {
	case Header:
		return "header " + c.Name
	case Body:
		return "JSON body at " + c.Name
	case Form:
		return "form field " + c.Name
	case Query:
		return "query parameter " + c.Name
	case Nowhere:
		return "no key is sent"
	}
	return ""
}

// String returns the bounds of a key in words, with their defaults.
func (k KeyRule) String() string {
	text := fmt.Sprintf("%d to %d bytes", max(k.MinBytes, 1), cmp.Or(k.MaxBytes, keyBytesMax))
	switch k.Format {
	case UUID:
		text += ", a UUID"
	case UUIDv4:
		text += ", a UUID of version 4"
	}
	if k.Alphabet != "" {
		text += ", of " + shortAlphabet(k.Alphabet)
	}
	return text
}

// String returns the formats and the comparison in words; "" for the zero value.
func (b BodyRule) String() string {
	texts := make([]string, len(b.Formats))
	for i, format := range b.Formats {
		texts[i] = string(format)
	}
	if b.Compared != "" {
		texts = append(texts, "compared by "+string(b.Compared))
	}
	return strings.Join(texts, ", ")
}

// shortAlphabet abbreviates the usual runs of characters to A-Z, a-z and 0-9.
func shortAlphabet(alphabet string) string {
	return strings.NewReplacer(upper, "A-Z", lower, "a-z", digits, "0-9").Replace(alphabet)
}

// String returns the time for which the API remembers a key, with a note if it does not promise that; "" for the zero value.
func (w Window) String() string {
	if w.Floor == 0 {
		return ""
	}
	if w.Published != Yes {
		return spanText(w.Floor).String() + ", a cap that nobody promised"
	}
	return spanText(w.Floor).String()
}

// String returns the matcher's conditions in words.
func (m Matcher) String() string {
	var parts []string
	if len(m.Status) > 0 {
		parts = append(parts, joined(m.Status))
	}
	if m.Header != "" {
		parts = append(parts, strings.TrimSuffix(m.Header+": "+strings.Join(m.Has, " or "), ": "))
	}
	switch {
	case m.Pointer != "" && len(m.Equals) > 0:
		parts = append(parts, m.Pointer+" = "+strings.Join(m.Equals, " or "))
	case m.Pointer != "":
		parts = append(parts, m.Pointer+" is there")
	}
	return strings.Join(parts, " with ")
}

// matchersText returns the texts of the matchers, joined.
func matchersText(list []Matcher) string {
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.String()
	}
	return strings.Join(texts, "; ")
}

// String lists the statuses that prove that nothing was done; "" for the zero value.
func (n NotActed) String() string {
	var parts []string
	if len(n.Again) > 0 {
		parts = append(parts, joined(n.Again)+" (send again)")
	}
	if len(n.Stop) > 0 {
		parts = append(parts, joined(n.Stop)+" (stop)")
	}
	return strings.Join(parts, "; ")
}

// String says in words which unusual answers are the API's own: pages of HTML, errors without a body.
func (o Own) String() string {
	text := fmt.Sprintf("HTML in successes: %v", o.HTML)
	if len(o.Bare) > 0 {
		text += "; 4xx with HTML or without a body: " + joined(o.Bare)
	}
	if o.SeeOther != Unknown {
		text += fmt.Sprintf("; 303 as a success: %v", o.SeeOther)
	}
	return text
}

// String says in words which answers the API stores under the key, and gives again for a repeat.
func (s Stored) String() string {
	client := "unknown"
	if len(s.Client) > 0 {
		client = matchersText(s.Client)
	}
	return fmt.Sprintf("2xx: %v; 4xx: %s; 5xx: %v", s.Success, client, s.ServerError)
}

// String returns in words the header by which the API advises to send again or not, and its values.
func (s ShouldRetry) String() string {
	text := s.Header + ":"
	if s.Yes != "" {
		text += fmt.Sprintf(" %q sends again,", s.Yes)
	}
	if s.No != "" {
		text += fmt.Sprintf(" %q stops,", s.No)
	}
	if s.Absent == No {
		text += " an error without it stops,"
	}
	return strings.TrimSuffix(text, ",")
}

// String returns the place in which the API says how long to wait, and the unit.
func (h Hint) String() string {
	name := h.Header
	if h.Pointer != "" {
		name = "JSON body at " + h.Pointer
	}
	if h.Unit == Milliseconds {
		name += " in ms"
	}
	return name
}

// String describes the lookup in words, for people.
func (l Lookup) String() string { return fmt.Sprintf("GET %s, the id from %s", l.Path, l.Pointer) }

// String describes the request to cancel in words.
func (c Cancel) String() string {
	return fmt.Sprintf("POST %s, the key at %s, for operations at %s", c.Path, c.Pointer, c.For)
}

// String describes the request by which the API hands out a token, used as the key.
func (t Token) String() string {
	if t.Path == "" {
		return "handed out by the API"
	}
	return fmt.Sprintf("%s %s, the token from %s", cmp.Or(t.Method, "POST"), t.Path, t.Pointer)
}

// String describes how the API is asked for an operation by a business reference, and which fields must be the same.
func (r Reference) String() string {
	same := make([]string, len(r.Same))
	for i, s := range r.Same {
		same[i] = s.Request + " is " + s.Resource
	}
	where := ""
	if r.List != "" {
		where = ", the list at " + r.List
	}
	text := fmt.Sprintf("GET %s%s, where %s", r.Path, where, strings.Join(same, ", "))
	if r.FoundWithin > 0 {
		text += "; found for certain within " + spanText(r.FoundWithin).String()
	}
	return text
}

// joined joins numbers with commas.
func joined(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}

// words returns the text for people of a fact's value; value is the pointer of fact.part. Lookup, Webhook, Cancel, Token and
// Reference must not be nil.
func words(value any) string {
	switch v := value.(type) {
	case *Carrier:
		return v.String()
	case *Encoding:
		if *v == SFString {
			return "a quoted string (sf-string)"
		}
		return string(*v)
	case *[]string:
		return strings.Join(*v, ", ")
	case *string:
		return *v
	case *[]Endpoint:
		texts := make([]string, len(*v))
		for i, e := range *v {
			texts[i] = e.String()
		}
		return strings.Join(texts, ", ")
	case *[]Verdict:
		texts := make([]string, len(*v))
		for i, verdict := range *v {
			texts[i] = verdict.String()
		}
		return strings.Join(texts, "; ")
	case *windowText:
		return Window(*v).String()
	case *[]Matcher:
		return matchersText(*v)
	case *[]Hint:
		texts := make([]string, len(*v))
		for i, h := range *v {
			texts[i] = h.String()
		}
		return strings.Join(texts, ", ")
	case **Lookup:
		return (*v).String()
	case **Webhook:
		return (*v).String()
	case **Cancel:
		return (*v).String()
	case **Token:
		return (*v).String()
	case **Reference:
		return (*v).String()
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(value)
}
