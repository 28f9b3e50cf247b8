package words

import (
	"fmt"
	"strings"
)

// A field name of an NDJSON row with a slash at its start is a JSON pointer (RFC 6901): /order/id is the member id of the member order.

// IsPointer reports whether a name is a JSON pointer and not the name of a column.
func IsPointer(name string) bool { return strings.HasPrefix(name, "/") }

// CheckPointers returns an error for a name that begins like a JSON pointer and is none, by a wrong "~". Other names are columns, and pass.
func CheckPointers(names []string) error {
	for _, name := range names {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(name)
		if IsPointer(name) && strings.Contains(rest, "~") {
			return fmt.Errorf(`{%s} is not a JSON pointer: "~" is written ~0, and a "/" in a name ~1`, Clip(name))
		}
	}
	return nil
}

// PointerTo returns the JSON pointer to the member of an object with this name.
func PointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
