package journal

import (
	"os"
	"os/user"
)

// signature names the user and the machine, as the system names them. Behind sudo it is the user calling sudo.
func signature() string {
	name := os.Getenv("SUDO_USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	host, err := os.Hostname()
	switch {
	case err != nil && name == "":
		return ""
	case err != nil:
		return "by " + name
	case name == "":
		return "at " + host
	}
	return "by " + name + "@" + host
}

// signed returns a reason with its author.
func signed(reason, by string) string {
	switch {
	case by == "":
		return reason
	case reason == "":
		return by
	}
	return reason + " (" + by + ")"
}
