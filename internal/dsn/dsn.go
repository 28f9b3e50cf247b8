// Package dsn tells names of databases from names of files.
package dsn

import (
	"slices"
	"strings"
)

// Engine returns the database named by a text: "postgres", "mysql" or "redis". It decides by the scheme of a URL or by a driver's
// spelling of a server's address. It returns the empty string if the text may be the name of a file. The text may hold a password.
func Engine(text string) string {
	lower := strings.ToLower(text)
	scheme, _, hasScheme := strings.Cut(lower, ":")
	switch {
	case hasScheme && (scheme == "postgres" || scheme == "postgresql"), isSettings(lower):
		return "postgres"
	case hasScheme && (scheme == "mysql" || scheme == "mariadb"), strings.Contains(lower, "@tcp("), strings.Contains(lower, "@unix("):
		return "mysql"
	case hasScheme && (scheme == "redis" || scheme == "rediss"):
		return "redis"
	}
	return ""
}

// isSettings reports whether a text is a list of settings as libpq takes it, such as "host=db.test user=shop".
func isSettings(text string) bool {
	known := []string{"host", "hostaddr", "port", "dbname", "user", "password", "service", "sslmode"}
	words := strings.Fields(text)
	return len(words) > 1 && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(word, "=") }) &&
		slices.ContainsFunc(words, func(word string) bool {
			setting, _, _ := strings.Cut(word, "=")
			return slices.Contains(known, setting)
		})
}
