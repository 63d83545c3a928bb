// The program of two equal units: that it was linked is what is tested.
int main() { return 0; }
