// a comment that goes on \
%RANGE% WIDTH w 128:512:128
const char* text = "// %RANGE% NOT n 1:2:1";
void f(float* y) { y[0] = WIDTH; }
