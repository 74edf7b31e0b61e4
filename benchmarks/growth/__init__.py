"""Does a task cost more in a large DAG, beside many active or finished executions, or with large values?"""
