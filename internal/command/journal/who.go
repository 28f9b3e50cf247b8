package journal

import (
	"os"
	"os/user"
)

// signature names the user and the machine, as in "by anna@host1", for the reason kept with an act. Behind sudo it is the user who called sudo. "" if neither is known.
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

// signed returns a reason with its author behind it. by is that of signature; if one of the two is empty, it returns the other.
func signed(reason, by string) string {
	switch {
	case by == "":
		return reason
	case reason == "":
		return by
	}
	return reason + " (" + by + ")"
}
