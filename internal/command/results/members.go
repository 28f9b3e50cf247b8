package results

import (
	"strconv"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// members are the members of a JSON object without its closing brace. Its methods append one; the methods with If at the end append none
// if the value is zero.
type members []byte

// name appends the name of a member to the text of a JSON object, and the comma or brace before it. The value must follow.
func (m members) name(name string) members {
	before := byte(',')
	if len(m) == 0 {
		before = '{'
	}
	return append(append(append(m, before, '"'), name...), `":`...)
}

// text appends a member with a text as its value.
func (m members) text(name, value string) members { return words.AppendJSON(m.name(name), value) }

// number appends a member with a number as its value.
func (m members) number(name string, value int) members {
	return strconv.AppendInt(m.name(name), int64(value), 10)
}

// textIf appends a member, unless the value is empty.
func (m members) textIf(name, value string) members {
	if value == "" {
		return m
	}
	return m.text(name, value)
}

// numberIf appends a member, unless the value is zero.
func (m members) numberIf(name string, value int) members {
	if value == 0 {
		return m
	}
	return m.number(name, value)
}
