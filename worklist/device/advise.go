package device

import "time"

// Link is how an item stands whose files are not all at this device.
type Link struct {
	Reachable  bool          // a partner that has them is connected
	NoRoom     bool          // this device has no room for them
	Takes      time.Duration // for what is to come, as measured; 0: not measured
	Locked     bool          // the user has locked the item
	Offline    bool          // its task may be done out of reach
	Prefetches bool          // files come before they are needed
}

// Advice is what is best done about files that are not here.
type Advice string

// What may be advised.
const (
	Room      Advice = "room"      // none comes before this device has room for it
	Wait      Advice = "wait"      // nobody who has them is connected: other items can be done meanwhile
	Open      Advice = "open"      // they are here in no time, or nobody can say: open them
	Coming    Advice = "coming"    // they come by themselves
	Lock      Advice = "lock"      // lock the item, and have them come meanwhile: then it can be done out of reach, too
	Prefetch  Advice = "prefetch"  // have them come in the background
	Elsewhere Advice = "elsewhere" // it takes too long: look at them at a node that has them
)

const (
	// waitsGladly is how long somebody waits for a file in front of the screen, tooLong what nobody waits for.
	waitsGladly = 20 * time.Second
	tooLong     = 2 * time.Hour
)

// Advise says what to do about files that are not here over a weak link: whether to work on data that are brought
// here first, or on those that are elsewhere (rule 21 in docs/worklists.md).
func Advise(l Link) Advice {
	background := l.Prefetches && l.Offline
	switch {
	case l.NoRoom:
		return Room
	case !l.Reachable:
		return Wait
	case l.Takes <= waitsGladly:
		return Open
	case l.Takes > tooLong:
		return Elsewhere
	case background:
		return Coming
	case l.Offline && !l.Locked:
		return Lock
	case l.Offline:
		return Prefetch
	}
	return Open
}
