package partition

import "testing"

// What several applications lack in common is said once, with their names.
func TestOneWayToGetThingsIsSaidOnce(t *testing.T) {
	nowhere := []demand{
		{get: getApplication("winch")}, {get: getCapability("crane")}, {get: getApplication("saw")}, {get: getDatabase},
		{get: getApplication("winch")}, {get: getApplication("axe")}, {get: getDatabase},
	}
	const want = "a partner configures it, or announces a worker's: mutirao profile set --application winch, and so for saw, axe; " +
		"a partner gets it: mutirao profile set --capability crane; " + getDatabase
	if got := howToGet(nowhere); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
