// Package browser opens the pages of the service in a real browser, and looks at
// them as a reader's eyes, keyboard and screen reader would: nothing is loaded
// from elsewhere, nothing is complained of in the console, text stands out from
// its ground, headings and landmarks make an outline, links lead to where they
// say. What the pages say is looked at beside what makes them.
//
// TEST_CHROMIUM names the browser, a Chromium or Chrome; without it one is looked
// for under its usual names. TEST_PICTURES names a folder that gets a picture of
// each view, for people.
package browser
