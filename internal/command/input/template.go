package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// bodyTemplate makes a JSON body out of a row: --body. Inside a JSON string {column} stands for a cell's text; outside one
// {column:number}, {column:minor} and {column:bool} stand for a whole value. No cell can change the structure of the template's JSON.
type bodyTemplate struct {
	parts   []bodyPart
	columns []string // the columns named, in order, each once
	numbers Spelling // nil: numbers stand as JSON spells them
	doubled []string // the names in two braces, which are text
}

// bodyPart is a literal or, with a kind, a column.
type bodyPart struct {
	kind    cellKind
	literal string
	column  int // index into bodyTemplate.columns
	// currency and currencyAt are for an amount in its smallest unit: a code, or else the index of a column.
	currency   string
	currencyAt int
}

// cellKind is the form of a cell in a body.
type cellKind uint8

const (
	cellNone   cellKind = iota // no cell: a literal
	cellText                   // inside a JSON string: the cell, escaped
	cellNumber                 // the cell's digits as they are
	cellBool                   // true or false, as the cell says
	cellMinor                  // the cell's amount in the smallest unit of its currency
)

// ReadBodyTemplate reads the value of --body, a JSON text with {column} in it, or @FILE with such a text.
func ReadBodyTemplate(value string) (*bodyTemplate, error) {
	flag := "--body"
	if name, isFile := strings.CutPrefix(value, "@"); isFile {
		text, err := terminal.ReadBounded(name, BodyFileBytesMax)
		if err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
		flag, value = "--body @"+name, string(text)
	}
	t, err := parseBodyTemplate(strings.TrimSpace(value)) // an editor's last newline means nothing
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return t, nil
}

// parseBodyTemplate parses a JSON text with {column} in it. To check it without a row, it makes a sample with each {column} replaced by harmless text of the same
// length, which must be JSON. So a column in place of a member's name, or beside other characters, is an error, and its position is right.
func parseBodyTemplate(text string) (*bodyTemplate, error) {
	if text == "" {
		return nil, errors.New(`is empty; want JSON, such as '{"amount":{amount:number},"order":"{order_id}"}'`)
	}
	if err := CheckText(text); err != nil {
		return nil, err
	}
	p := bodyParser{text: text}
	for p.at < len(text) {
		if err := p.step(); err != nil {
			return nil, err
		}
	}
	p.flush()
	if !json.Valid(p.sample) {
		return nil, fmt.Errorf("is not JSON once filled: %w", p.fault())
	}
	return &p.bodyTemplate, nil
}

// bodyParser reads a template from left to right.
type bodyParser struct {
	bodyTemplate
	text     string
	at       int
	literal  []byte // not yet a part
	sample   []byte // the text read so far, as JSON, byte for byte in the same place
	inString bool
	filled   bool // the string has a column in it
}

// step reads the next character or {COLUMN} of the template, outside or inside a JSON string (inString). A "{" with a blank, a quote or a brace behind it is one of
// JSON itself. filled tells if the present string has a column in it: false at its beginning. An error says what is wrong at that place.
func (p *bodyParser) step() error {
	switch c := p.text[p.at]; {
	case p.inString:
		return p.stepInString(c)
	case c == '{' && p.at+1 < len(p.text) && !strings.ContainsRune(" \t\r\n\"{}", rune(p.text[p.at+1])):
		return p.value()
	case c == '"':
		p.inString, p.filled = true, false
	}
	p.take(1)
	return nil
}

// stepInString reads the next character or {COLUMN} inside a JSON string of the template. c is that character. Two braces stand for one; a name in them is noted
// for a warning (doubled). A string with a column in it (filled) and a colon behind it is the name of a member, and an error. skip adds harmless text to the
// checked sample.
func (p *bodyParser) stepInString(c byte) error {
	rest := p.text[p.at:]
	switch {
	case c == '\\':
		p.take(min(2, len(rest)))
	case c == '"':
		p.take(1)
		p.inString = false
		if p.filled && strings.HasPrefix(strings.TrimLeft(p.text[p.at:], " \t\r\n"), ":") {
			return errors.New("a column cannot stand in the name of a member, only in its value")
		}
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
		if name, _, closed := strings.Cut(rest[2:], "}}"); c == '{' && closed && name != "" && !strings.ContainsAny(name, "{}\" \t\r\n\\") {
			p.doubled = append(p.doubled, name)
		}
		p.literal = append(p.literal, c)
		p.skip("xx")
	case c == '{':
		name, closed := p.braces()
		switch {
		case !closed || strings.Contains(name, `"`):
			return errors.New(`a "{" that no "}" closes; for the character itself write "{{"`)
		case name == "":
			return errors.New(`"{}" names no column; for the characters themselves write "{{}}"`)
		}
		p.filled = true
		p.column(cellText, name)
		p.skip(strings.Repeat("x", len(name)+2))
	case c == '}':
		return errors.New(`a "}" without a "{" before it; for the character itself write "}}"`)
	default:
		p.take(1)
	}
	return nil
}

// value reads {COLUMN:KIND} outside quotes, which stands for a whole JSON value: a number, an amount in cents, or true or false. In the sample by which the
// template is checked, it is an empty list of the same length: a whole value, with which no character beside it makes another one.
func (p *bodyParser) value() error {
	inside, closed := p.braces()
	if !closed && !strings.Contains(inside, "{") {
		return errors.New(`a "{" outside quotes that no "}" closes`)
	}
	name, kind, currency := cellNamed(inside)
	if !closed || kind == cellNone || name == "" {
		return fmt.Errorf(`"{%s}" stands outside quotes: want {column:number}, {column:minor} or {column:bool} there, or "{column}" in quotes`, words.Clip(inside))
	}
	p.column(kind, name)
	p.parts[len(p.parts)-1].currency = currency
	p.skip("[" + strings.Repeat(" ", len(inside)) + "]")
	return nil
}

// cellNamed splits the text inside braces: COLUMN:KIND, or COLUMN:minor:CURRENCY. kind is cellNone if there is no known kind.
func cellNamed(inside string) (name string, kind cellKind, currency string) {
	// Any currency has three letters, as EUR has.
	if n := len(inside) - len(":minor:EUR"); n >= 0 && strings.HasPrefix(inside[n:], ":minor:") {
		return inside[:n], cellMinor, inside[n+len(":minor:"):]
	}
	colon := strings.LastIndexByte(inside, ':')
	if colon < 0 {
		return inside, cellNone, ""
	}
	kind = map[string]cellKind{"number": cellNumber, "minor": cellMinor, "bool": cellBool}[inside[colon+1:]]
	return inside[:colon], kind, ""
}

// Use sets how numbers are read, and the column with the currency of each {column:minor}, an amount in the smallest unit. With column "" such a part must name its
// currency itself; else it is an error. It is called once, before the first row.
func (t *bodyTemplate) Use(numbers Spelling, column string) error {
	t.numbers = numbers
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.kind != cellMinor || p.currency != "":
		case column == "":
			name := words.Clip(t.columns[p.column])
			return fmt.Errorf("--body: {%s:minor} needs the currency: --currency COLUMN, or {%s:minor:EUR}", name, name)
		default:
			p.currencyAt = t.columnIndex(column)
		}
	}
	return nil
}

// Doubled returns the names in two braces, {{name}}. Other tools put a column there; here it is text, so that the user is warned.
func (t *bodyTemplate) Doubled() []string { return t.doubled }

// HasNumbers reports whether the template reads some column as a number.
func (t *bodyTemplate) HasNumbers() bool {
	return slices.ContainsFunc(t.parts, func(p bodyPart) bool { return p.kind == cellNumber || p.kind == cellMinor })
}

// ReadsNumber reports whether this column is read as a number.
func (t *bodyTemplate) ReadsNumber(column string) bool {
	return slices.ContainsFunc(t.parts, func(p bodyPart) bool {
		return (p.kind == cellNumber || p.kind == cellMinor) && t.columns[p.column] == column
	})
}

// ReadsMinor reports whether this column is read as an amount in the smallest unit of its currency.
func (t *bodyTemplate) ReadsMinor(column string) bool {
	return slices.ContainsFunc(t.parts, func(p bodyPart) bool { return p.kind == cellMinor && t.columns[p.column] == column })
}

// columnIndex returns the index of a column in columns. It adds the column if it is not there.
func (t *bodyTemplate) columnIndex(name string) int {
	i := slices.Index(t.columns, name)
	if i < 0 {
		i = len(t.columns)
		t.columns = append(t.columns, name)
	}
	return i
}

// braces returns the text between the brace at the present place and the next closing one. closed is false if there is none before another opening one.
func (p *bodyParser) braces() (inside string, closed bool) {
	inside, _, closed = strings.Cut(p.text[p.at+1:], "}")
	return inside, closed && !strings.Contains(inside, "{")
}

// take copies the next n bytes of the template as they are, to the present literal and to the sample.
func (p *bodyParser) take(n int) {
	p.literal = append(p.literal, p.text[p.at:p.at+n]...)
	p.skip(p.text[p.at : p.at+n])
}

// skip goes on by len(sample) bytes of the template, and adds sample to the JSON by which the template is checked. Equal lengths keep the positions of faults right.
func (p *bodyParser) skip(sample string) {
	p.sample = append(p.sample, sample...)
	p.at += len(sample)
}

// column ends the present literal, and adds a part for the value of a column.
func (p *bodyParser) column(kind cellKind, name string) {
	p.flush()
	p.parts = append(p.parts, bodyPart{kind: kind, column: p.columnIndex(name)})
}

// flush adds the literal read so far as a part of its own, if it is not empty.
func (p *bodyParser) flush() {
	if len(p.literal) > 0 {
		p.parts = append(p.parts, bodyPart{literal: string(p.literal)})
		p.literal = p.literal[:0]
	}
}

// fault returns an error with the position of the first fault in the sample's JSON.
func (p *bodyParser) fault() error {
	var v any
	err := json.Unmarshal(p.sample, &v)
	if se := (*json.SyntaxError)(nil); errors.As(err, &se) {
		// Text and sample differ only within a column.
		if i := int(se.Offset) - 1; i >= 0 && i < len(p.text) && p.text[i] != p.sample[i] {
			err = errors.New("a column cannot stand there: outside quotes it is a whole value, with nothing beside it")
		}
		return fmt.Errorf("byte %d: %w", se.Offset, err)
	}
	return err
}

// fill returns the body of a row with these values of its columns. If one of them is unfit, the error is about column.
func (t *bodyTemplate) fill(value func(column int) string) (body []byte, column int, err error) {
	var b bytes.Buffer
	for _, p := range t.parts {
		if p.kind == cellNone {
			b.WriteString(p.literal)
			continue
		}
		text, err := t.spell(&p, value)
		if err == nil && b.Len()+len(text) > RowBytesMax {
			err = fmt.Errorf("makes a body that %w", errRowTooLong)
		}
		if err != nil {
			return nil, p.column, err
		}
		b.WriteString(text)
	}
	return b.Bytes(), 0, nil
}

// spell returns the text of a part of the body for one row: a cell as a piece of a JSON string, or as a whole JSON value. value returns the cell of a column. The
// error says why the cell has no such text.
func (t *bodyTemplate) spell(p *bodyPart, value func(column int) string) (string, error) {
	cell := value(p.column)
	switch k := p.kind; {
	case k == cellText:
		quoted := words.JSONString(cell)
		return quoted[1 : len(quoted)-1], nil
	case cell == "":
		return "", errors.New("is empty, and --body needs a value")
	case k == cellNumber:
		return spellNumber(t.numbers, cell)
	case k == cellMinor && p.currency != "":
		return t.numbers.Minor(cell, p.currency)
	case k == cellMinor:
		return t.numbers.Minor(cell, value(p.currencyAt))
	case k == cellBool && cell != "true" && cell != "false":
		return "", fmt.Errorf("%q is neither true nor false", words.Clip(cell))
	}
	return cell, nil
}
